// The microphone: unprocessed samples, their level, and wavs that begin before the key and end after it.
"use strict";

const RATE = 48000, EDGE_SECONDS = 0.4;
const PROCESSING = { echoCancellation: "echo cancellation", noiseSuppression: "noise suppression",
  autoGainControl: "automatic gain" };

class Microphone {
  before = []; // the newest blocks while nothing is recorded
  parts = null; // the blocks of the recording
  seconds = 0; // of the recording

  // onlevel is called with the level of each block in dBFS, and its seconds
  static async open(onlevel, onend) {
    const mine = Object.assign(new Microphone(), { onlevel });
    const off = Object.fromEntries(Object.keys(PROCESSING).map((name) => [name, false]));
    const stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1, ...off } });
    const [track] = stream.getAudioTracks(), settings = track.getSettings();
    mine.processing = Object.keys(PROCESSING).filter((name) => settings[name]).map((name) => PROCESSING[name]);
    const connect = (options) => (mine.context = new AudioContext(options)).createMediaStreamSource(stream);
    let source;
    try { source = connect({ sampleRate: RATE }); } catch { source = connect(); } // some browsers do not resample
    await mine.context.audioWorklet.addModule("worklet.js");
    const options = { numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit" };
    const node = new AudioWorkletNode(mine.context, "samples", options);
    node.port.onmessage = ({ data }) => mine.hear(data);
    source.connect(node);
    track.onended = () => { mine.finish?.(); onend(); };
    await mine.context.resume();
    return mine;
  }
  get rate() { return this.context.sampleRate; }

  hear(block) {
    const samples = Int16Array.from(block, (x) => Math.max(-32768, Math.min(32767, Math.round(32768 * x))));
    const seconds = block.length / this.rate;
    if (this.parts) {
      this.parts.push(samples);
      this.seconds += seconds;
      if (this.seconds >= this.until) this.finish();
    } else {
      this.before.push(samples);
      if (this.before.length * seconds > EDGE_SECONDS + seconds) this.before.shift();
    }
    const power = block.reduce((sum, x) => sum + x * x, 0) / block.length;
    this.onlevel(Math.max(-90, 10 * Math.log10(power + 1e-9)), seconds);
  }
  start() {
    this.context.resume(); // after a closed lid
    this.parts = this.before.splice(0);
    this.seconds = this.parts.reduce((sum, part) => sum + part.length, 0) / this.rate;
    this.until = Infinity;
  }
  // The recording as a wav, after 0.4 s more
  stop(more = EDGE_SECONDS) {
    this.until = this.seconds + more;
    return new Promise((resolve) => {
      this.finish = () => {
        resolve(wavOf(this.parts ?? [], this.rate));
        this.parts = this.finish = null;
      };
    });
  }
}

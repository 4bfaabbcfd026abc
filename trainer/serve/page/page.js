// The page of `xtts-synth serve`: asks for speech, plays it while it comes, and draws its mel.
"use strict";

const byId = (name) => document.getElementById(name);
const [form, text, voice, language, steps, speed, status] =
  ["form", "text", "voice", "language", "steps", "speed", "status"].map(byId);
const [speakButton, stopButton, audio, download, canvas, head, token] =
  ["speak", "stop", "audio", "download", "mel", "head", "token"].map(byId);

const LOUD_AND_QUIET = [0.5, -9]; // the natural logarithms of magnitude at the ends of the colours
let offer = null;
let running = null; // the request that is being answered or heard: {abort, player}
let mel = null; // {values: Float32Array, frames, channels}

function say(words, wrong = false) {
  status.textContent = words;
  status.classList.toggle("wrong", wrong);
}

async function ask(path, options = {}) {
  const headers = { ...options.headers };
  const known = sessionStorage.getItem("token");
  if (known) headers.Authorization = `Bearer ${known}`;
  const answer = await fetch(path, { ...options, headers });
  if (answer.status === 401) byId("token-field").hidden = false;
  if (!answer.ok) {
    const told = await answer.json().catch(() => null);
    throw new Error(told?.error?.message ?? `status ${answer.status}`);
  }
  return answer;
}

// What there is to choose from

function fill(select, values) {
  select.replaceChildren(...values.map((value) => new Option(value, value)));
  select.disabled = values.length < 2;
}

async function loadOffer() {
  try {
    offer = await (await ask("voices")).json();
  } catch (error) {
    return say(error.message, true);
  }
  fill(voice, offer.voices.map((one) => one.id));
  fill(language, offer.languages);
  fill(steps, offer.nfe);
  byId("model").textContent = offer.model;
  countLetters();
  say("Ready.");
}

function countLetters() {
  const count = Array.from(text.value).length;
  byId("letters").textContent = offer ? `${count} of ${offer.most_letters}` : "";
}

// Sound while it comes

class Player {
  constructor(rate) {
    this.rate = rate;
    this.context = new AudioContext();
    this.begin = null;
    this.end = 0;
  }
  add(samples) {
    const buffer = this.context.createBuffer(1, samples.length, this.rate);
    buffer.copyToChannel(Float32Array.from(samples, (sample) => sample / 32768), 0);
    const source = this.context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.context.destination);
    const start = Math.max(this.end, this.context.currentTime + 0.05);
    if (this.begin === null) this.begin = start;
    else this.begin += start - this.end; // a pause while the next sentence was not ready
    source.start(start);
    this.end = start + buffer.duration;
  }
  get heard() {
    return this.begin === null ? 0 : Math.max(0, this.context.currentTime - this.begin);
  }
  get over() {
    return this.context.currentTime >= this.end;
  }
  stop() {
    if (this.context.state !== "closed") this.context.close();
  }
}

async function receive(answer, player, onFirst) {
  const parts = [];
  let odd = new Uint8Array(0);
  for (const reader = answer.body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) return parts;
    const bytes = new Uint8Array(odd.length + value.length);
    bytes.set(odd);
    bytes.set(value, odd.length);
    const whole = bytes.length & ~1;
    odd = bytes.slice(whole);
    if (!whole) continue;
    const samples = new Int16Array(bytes.buffer, 0, whole / 2);
    if (!parts.length) onFirst();
    parts.push(samples);
    player.add(samples);
  }
}

function wavOf(parts, rate) {
  const size = parts.reduce((sum, part) => sum + part.byteLength, 0);
  const view = new DataView(new ArrayBuffer(44));
  const letters = (at, word) => [...word].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
  letters(0, "RIFF"); view.setUint32(4, 36 + size, true); letters(8, "WAVEfmt ");
  view.setUint32(16, 16, true); view.setUint16(20, 1, true); view.setUint16(22, 1, true);
  view.setUint32(24, rate, true); view.setUint32(28, 2 * rate, true);
  view.setUint16(32, 2, true); view.setUint16(34, 16, true);
  letters(36, "data"); view.setUint32(40, size, true);
  return new Blob([view.buffer, ...parts], { type: "audio/wav" });
}

async function speak() {
  stop();
  const mine = running = { abort: new AbortController(), player: new Player(offer?.sample_rate ?? 22050) };
  stopButton.disabled = false;
  audio.pause();
  say("Speaking…");
  const began = performance.now();
  const since = () => ((performance.now() - began) / 1000).toFixed(2);
  try {
    if (!offer) throw new Error(status.textContent);
    const answer = await ask("v1/audio/speech", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        model: offer.model, input: text.value, voice: voice.value, language: language.value,
        nfe: Number(steps.value), speed: Number(speed.value), response_format: "pcm", stream_format: "audio",
      }),
      signal: mine.abort.signal,
    });
    let first = "";
    const parts = await receive(answer, mine.player, () => { first = since(); say(`First sound after ${first} s…`); });
    const seconds = parts.reduce((sum, part) => sum + part.length, 0) / offer.sample_rate;
    if (!parts.length) throw new Error("no sound came");
    keep(wavOf(parts, offer.sample_rate));
    const warning = decodeURIComponent(answer.headers.get("X-Warning") ?? "");
    say(`${seconds.toFixed(1)} s of speech in ${since()} s, first sound after ${first} s. ${warning}`.trim());
    await showMel(answer.headers.get("X-Request-Id"), seconds);
  } catch (error) {
    if (error.name !== "AbortError") say(error.message, true);
    if (running === mine) stop();
  }
}

function stop() {
  if (!running) return;
  running.abort.abort();
  running.player.stop();
  running = null;
  stopButton.disabled = true;
  if (status.textContent.endsWith("…")) say("Stopped.");
}

function keep(wav) {
  URL.revokeObjectURL(audio.src);
  audio.src = download.href = URL.createObjectURL(wav);
  download.hidden = false;
}

// The mel

async function showMel(requestId, seconds) {
  const answer = await ask(`v1/audio/mel/${requestId}`);
  const [frames, channels] = answer.headers.get("X-Mel-Shape").split(",").map(Number);
  mel = { values: new Float32Array(await answer.arrayBuffer()), frames, channels };
  canvas.setAttribute("aria-label", `Mel spectrogram of ${seconds.toFixed(1)} seconds of speech`);
  byId("seconds").textContent = `${seconds.toFixed(1)} s`;
  drawMel();
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const stops = [0, 1, 2, 3, 4].map((i) => style.getPropertyValue(`--mel-${i}`).trim())
    .map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return Array.from({ length: 256 }, (_, level) => {
    const place = (level / 255) * 4, low = Math.min(3, Math.floor(place)), share = place - low;
    return stops[low].map((value, i) => value + share * (stops[low + 1][i] - value));
  });
}

function drawMel() {
  if (!mel) return;
  const table = colours(), [loud, quiet] = LOUD_AND_QUIET;
  const image = new ImageData(mel.frames, mel.channels);
  for (let t = 0; t < mel.frames; t++) {
    for (let m = 0; m < mel.channels; m++) {
      const share = (mel.values[t * mel.channels + m] - quiet) / (loud - quiet);
      const at = 4 * ((mel.channels - 1 - m) * mel.frames + t);
      image.data.set([...table[Math.round(255 * Math.min(1, Math.max(0, share)))], 255], at);
    }
  }
  const small = new OffscreenCanvas(mel.frames, mel.channels);
  small.getContext("2d").putImageData(image, 0, 0);
  canvas.width = canvas.clientWidth * devicePixelRatio;
  canvas.height = canvas.clientHeight * devicePixelRatio;
  canvas.getContext("2d").drawImage(small, 0, 0, canvas.width, canvas.height);
}

function moveHead() {
  const playing = !audio.paused || (running && !running.player.over);
  const heard = audio.paused ? running?.player.heard ?? 0 : audio.currentTime;
  head.hidden = !(playing && audio.duration);
  if (!head.hidden) head.style.left = `${(100 * heard) / audio.duration}%`;
  if (running && audio.duration && running.player.over && !stopButton.disabled) stopButton.disabled = true;
  requestAnimationFrame(moveHead);
}

form.addEventListener("submit", (event) => { event.preventDefault(); speak(); });
stopButton.addEventListener("click", stop);
audio.addEventListener("play", stop);
text.addEventListener("input", countLetters);
speed.addEventListener("input", () => { byId("speed-shown").textContent = Number(speed.value).toFixed(2); });
token.addEventListener("change", () => { sessionStorage.setItem("token", token.value); loadOffer(); });
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); form.requestSubmit(); }
  if (event.key === "Escape") { stop(); audio.pause(); }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawMel);
addEventListener("resize", drawMel);
loadOffer();
moveHead();

// The page of `xtts-synth serve`: requests speech, plays it as it arrives, and keeps the takes.
"use strict";

const [form, text, voice, language, quality, speed, format, status] =
  ["form", "text", "voice", "language", "quality", "speed", "format", "status"].map(byId);
const [speakButton, stopButton, playButton, place, download, token, recordButton] =
  ["speak", "stop", "play", "place", "download", "token", "record"].map(byId);

const MOST_TAKES = 20;
const GREETINGS = {
  cmn: "你好。", de: "Guten Tag, ich bin NAME.", en: "Hello, I am NAME.", es: "Hola, soy NAME.", fa: "سلام.",
  fr: "Bonjour, je suis NAME.", hi: "नमस्ते।", ru: "Здравствуйте.",
};
let greeting = ""; // the text until the user writes one
const REFERENCE_RATE = 44100, REFERENCE_SECONDS = 30;
let offer = null;
let running = null; // the AbortController of the answer that is coming
let shown = null; // the take in the player
let takes = []; // the newest first
let recorder = null; // of the voice that is being recorded

function warning(answer) {
  const bytes = Uint8Array.from(answer.headers.get("X-Warning") ?? "", (c) => c.charCodeAt(0));
  return bytes.length ? ` ${new TextDecoder().decode(bytes)}` : "";
}

// The choices

function fill(select, options) {
  select.replaceChildren(...options);
  select.parentElement.hidden = options.length < 2;
}

// Numbers of evaluations by name: the server's default, its first, is normal
function qualities(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b), normal = sorted.indexOf(numbers[0]);
  const name = (number, i) =>
    ["Draft", "Normal", "Fine", "Finest"][i - normal + 1] ?? `${i < normal ? "Draft" : "Finest"} (${number})`;
  return sorted.map((number, i) => new Option(name(number, i), number, i === normal, i === normal));
}

async function loadOffer() {
  try {
    offer = await (await ask("v1/audio/voices")).json();
  } catch (error) {
    return say(error.message, true);
  }
  fill(voice, offer.voices.map((one) => new Option(one.name, one.id)));
  fill(language, offer.languages.map((code) => new Option(code, code)));
  followVoice();
  fill(quality, qualities(offer.nfe));
  const formats = offer.formats.filter((name) => name !== "pcm");
  format.replaceChildren(...formats.map((name) => new Option(name, name, name === "wav", name === "wav")));
  byId("model").textContent = offer.model;
  byId("imitation").hidden = !offer.takes_recordings;
  if (offer.takes_recordings) voice.parentElement.hidden = false;
  recordButton.hidden = !navigator.mediaDevices; // available on this machine and behind TLS
  greet();
  say("Ready.");
}

function followVoice() {
  language.value = offer.voice_languages[voice.value] ?? language.value;
}

function greet() {
  text.dir = offer.directions[language.value] ?? "auto"; // not by the first letter
  const name = (offer.voices.length > 1 ? voice.value : offer.model).replace(RegExp(`-${language.value}$`), "");
  const words = GREETINGS[language.value]?.replace("NAME", name[0].toUpperCase() + name.slice(1)) ?? "";
  if (text.value === greeting) text.value = greeting = words;
  checkText();
}

function checkText() {
  if (!offer) return;
  const count = Array.from(text.value).length, more = count - offer.most_letters;
  byId("letters").textContent = `${count} of ${offer.most_letters}`;
  byId("letters").classList.toggle("wrong", more > 0);
  text.setCustomValidity(more > 0 ? `too long by ${more}` : "");
  speakButton.disabled = more > 0 || !text.value.trim();
}

// A take: a request, and the sound received for it so far

class Take {
  constructor(rate) {
    Object.assign(this, { rate, text: text.value, said: "Stopped.", growing: true, parts: [], samples: 0 });
    const choices = [voice, language, quality].filter((select) => !select.parentElement.hidden);
    const pace = speed.value === "1" ? [] : [`speed ${speed.value}`];
    this.settings = [...choices.map((select) => select.selectedOptions[0].text), ...pace];
    const words = this.text.normalize().toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? ["speech"];
    const name = Array.from(words.join("-")).slice(0, 48).join("");
    const same = takes.filter((take) => take.text === this.text).length;
    this.asked = {
      model: offer.model, input: this.text, voice: voice.value, language: language.value,
      nfe: Number(quality.value), speed: Number(speed.value),
    };
    this.file = same ? `${name}-${same + 1}.wav` : `${name}.wav`;
  }
  get seconds() { return this.samples / this.rate; }
  add(samples) {
    this.parts.push(samples);
    this.samples += samples.length;
  }
  finish() {
    this.growing = false;
    this.url = URL.createObjectURL(wavOf(this.parts, this.rate));
  }
}

// The player of the take that is shown, which may still be growing

class Player {
  context = null;
  playing = false;
  sources = [];
  begin = 0; // the context's time at which the take's beginning was heard, or would have been
  end = 0; // the context's time at which what has come will have been heard
  resting = 0; // seconds of the take where it was paused

  get heard() {
    if (!this.playing) return this.resting;
    return Math.min(shown.seconds, Math.max(0, this.context.currentTime - this.begin));
  }
  play(from = this.resting) {
    this.silence();
    this.context ??= new AudioContext({ sampleRate: shown.rate });
    this.context.resume();
    this.playing = true;
    this.end = this.context.currentTime;
    this.begin = this.end - from;
    let skipped = from;
    for (const part of shown.parts) {
      const seconds = part.length / shown.rate;
      if (seconds > skipped) this.add(part, skipped);
      skipped = Math.max(0, skipped - seconds);
    }
  }
  add(samples, skipped = 0) {
    const buffer = this.context.createBuffer(1, samples.length, shown.rate);
    buffer.copyToChannel(Float32Array.from(samples, (sample) => sample / 32768), 0);
    const source = this.context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.context.destination);
    const now = this.context.currentTime, start = this.end > now ? this.end : now + 0.05;
    this.begin += start - this.end; // a pause while the next sentence was not ready
    source.start(start, skipped);
    this.end = start + buffer.duration - skipped;
    this.sources.push(source);
  }
  pause(at = this.heard) {
    this.resting = at;
    this.playing = false;
    this.silence();
  }
  silence() { for (const source of this.sources.splice(0)) source.stop(); }
}

const player = new Player();

async function receive(answer, take) {
  let odd = new Uint8Array(0), head = WAV_HEAD;
  for (const reader = answer.body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) return;
    const bytes = new Uint8Array(odd.length + value.length);
    bytes.set(odd);
    bytes.set(value, odd.length);
    if (bytes.length < head + 2) {
      odd = bytes;
      continue;
    }
    const samples = new Int16Array(bytes.buffer, head, (bytes.length - head) >> 1);
    odd = bytes.slice(head + samples.byteLength);
    head = 0;
    take.add(samples);
    if (player.playing && shown === take) player.add(samples);
  }
}

const askForSpeech = (asked, signal) => ask("v1/audio/speech", "POST", JSON.stringify(asked), "application/json", signal);

async function speak() {
  stop();
  const mine = running = new AbortController(), take = new Take(offer.sample_rate);
  show(take);
  player.play();
  say("Speaking…");
  const began = performance.now();
  const since = () => ((performance.now() - began) / 1000).toFixed(2);
  try {
    const answer = await askForSpeech({ ...take.asked, response_format: "wav", stream_format: "audio" }, mine.signal);
    const first = since();
    say(`First sound after ${first} s…`);
    await receive(answer, take);
    if (!take.samples) throw new Error("no sound arrived");
    take.said = `${take.seconds.toFixed(1)} s of speech in ${since()} s, first sound after ${first} s.${warning(answer)}`;
    say(take.said);
    keep(take);
  } catch (error) {
    if (running === mine && error.name !== "AbortError") {
      if (take.samples) take.said = `The speech broke off after ${take.seconds.toFixed(1)} s.`;
      else show(null);
      say(take.samples ? take.said : error.message, true);
    }
    if (take.samples) keep(take);
  } finally {
    if (running === mine) running = null;
  }
}

function stop() {
  if (running) say("Stopped.");
  running?.abort();
  running = null;
  player.pause(0);
  if (shown && !shown.samples) show(null);
}

// The takes

function show(take) {
  player.pause(0);
  shown = take;
  byId("shown").hidden = !take;
  if (take) showChange(take);
}

// What has changed of a take is shown, if it is the one that is shown
function showChange(take) {
  if (take !== shown) return;
  download.hidden = !take.url;
  if (take.url) Object.assign(download, { href: take.url, download: take.file });
  for (const item of byId("take-list").children) item.ariaCurrent = String(item.take === take);
}

function keep(take) {
  take.finish();
  takes.unshift(take);
  for (const old of takes.splice(MOST_TAKES)) URL.revokeObjectURL(old.url);
  byId("take-list").replaceChildren(...takes.map(takeItem));
  byId("takes").hidden = false;
  showChange(take);
}

// A download: the wav is stored; another format is requested again, with the same speech
async function save(event, take) {
  if (format.value === "wav") return;
  event.preventDefault();
  try {
    const href = URL.createObjectURL(await (await askForSpeech({ ...take.asked, response_format: format.value })).blob());
    const name = take.file.replace(/wav$/, format.value);
    make("a", "", { href, download: name }).click();
  } catch (error) {
    say(error.message, true);
  }
}

function takeItem(take) {
  const item = make("li", "", { take }), words = make("div", "");
  const again = make("button", "Play", { type: "button", className: "second low", ariaLabel: `Play ${take.file}` });
  again.addEventListener("click", () => { stop(); say(take.said); show(take); player.play(0); });
  const about = [`${take.seconds.toFixed(1)} s`, ...take.settings].join(", ");
  words.append(make("p", take.text, { dir: "auto", className: "cut" }), make("p", about, { className: "quiet small" }));
  const link = make("a", "Download", { className: "button second low", href: take.url, download: take.file });
  link.addEventListener("click", (event) => save(event, take));
  item.append(again, words, link);
  return item;
}

// What moves while a take is heard

const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;

function move() {
  if (player.playing && !shown.growing && player.heard >= shown.seconds) player.pause(0);
  stopButton.disabled = !running && !player.playing;
  if (shown) {
    const { heard } = player;
    place.max = shown.seconds;
    place.value = heard;
    place.ariaValueText = byId("time").textContent = `${clock(heard)} / ${clock(shown.seconds)}`;
    playButton.textContent = player.playing ? "Pause" : "Play";
  }
  requestAnimationFrame(move);
}

// A voice of one's own, for a model that imitates recordings

async function imitate(recording, name) {
  say("Reading the recording…");
  try {
    const sound = await new OfflineAudioContext(1, 1, REFERENCE_RATE).decodeAudioData(await recording.arrayBuffer());
    const channels = Array.from({ length: sound.numberOfChannels }, (_, i) => sound.getChannelData(i));
    const samples = Int16Array.from(channels[0].subarray(0, REFERENCE_SECONDS * REFERENCE_RATE), (_, at) => {
      const mean = channels.reduce((sum, channel) => sum + channel[at], 0) / channels.length;
      return Math.round(32767 * Math.min(1, Math.max(-1, mean)));
    });
    const same = offer.voices.filter((one) => one.id.startsWith(name)).length;
    const id = same ? `${name} ${same + 1}` : name;
    const path = `v1/audio/voices/${encodeURIComponent(id)}`;
    const answer = await ask(path, "PUT", wavOf([samples], REFERENCE_RATE), "audio/wav");
    await loadOffer();
    voice.value = id;
    say(`The next take uses the voice of ${id}.${warning(answer)}`);
  } catch (error) {
    say(error.name === "EncodingError" ? "The browser cannot read sound from this file." : error.message, true);
  }
}

async function record() {
  if (recorder) return recorder.stop();
  stop();
  try {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    recorder = new MediaRecorder(stream);
    recorder.addEventListener("dataavailable", (event) => imitate(event.data, "My voice"));
    recorder.addEventListener("stop", () => {
      for (const track of stream.getTracks()) track.stop();
      recorder = null;
      recordButton.textContent = "Record";
    });
    recorder.start();
    recordButton.textContent = "Finish";
    say("Recording: read something aloud for 5 to 30 seconds, then choose Finish.");
  } catch (error) {
    say(error.message, true);
  }
}

form.addEventListener("submit", (event) => { event.preventDefault(); if (!speakButton.disabled) speak(); });
stopButton.addEventListener("click", stop);
playButton.addEventListener("click", () => { if (player.playing) player.pause(); else player.play(); });
place.addEventListener("input", () => {
  const seconds = Number(place.value);
  if (player.playing) player.play(seconds); else player.pause(seconds);
});
text.addEventListener("input", () => { checkText(); if (status.className) say(""); });
voice.addEventListener("change", () => { followVoice(); greet(); });
language.addEventListener("change", greet);
download.addEventListener("click", (event) => save(event, shown));
speed.addEventListener("input", () => { byId("speed-shown").textContent = Number(speed.value).toFixed(2); });
token.addEventListener("change", () => { sessionStorage.setItem("token", token.value); loadOffer(); });
byId("upload").addEventListener("click", () => byId("recording").click());
byId("recording").addEventListener("change", ({ target }) => {
  const [file] = target.files;
  if (file) imitate(file, file.name.replace(/\.[^.]*$/, "").slice(0, 40));
  target.value = "";
});
recordButton.addEventListener("click", record);
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); form.requestSubmit(); }
  if (event.key === "Escape") stop();
});
loadOffer();
move();

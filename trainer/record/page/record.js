// The page of `xtts-record`: reads the state from the server, records takes, and keeps those that are not saved yet.
"use strict";

const [prompt, place, level, begin, reading, recordButton, continuous, takeList, player, progress] =
  ["prompt", "place", "level", "begin", "reading", "record", "continuous", "take-list", "player", "progress"].map(byId);

const SILENCE_SECONDS = 5, LONGEST_TEST = 20, PAUSE_SECONDS = 1, LEAST_SPEECH = 0.3, ABOVE_NOISE = 12; // the last in dB
const PHASES = {
  none: "", checking: "Checking the recordings…", preparing: "Preparing; each shape is compiled once…",
  finishing: "Finishing: the voice is exported and measured…", done: "The voice is made.",
  stopped: "Stopped. It goes on from there.",
};
let state = null, microphone = null;
let position = 0; // of the prompt that is shown
let last = null; // the prompt of the newest take
let unsaved = null; // a Cache of takes that the server has not stored
let noise = -60; // dBFS of the room
let ending = null; // what happens when the reader has paused

// A handler that says what goes wrong in a task
const attempt = (task) => (event) => task(event).catch((error) => say(error.message, true));

async function update(...asked) {
  const changed = await (await ask(...asked)).json();
  state = { ...state, ...changed };
  if (changed.takes) show();
  else showMaking();
}

const takeOf = (text) => state.takes.find((take) => take.text === text);
const current = () => state.prompts[position];

// What is shown

function show() {
  byId("folder").textContent = state.folder;
  const take = takeOf(current());
  if (prompt.textContent !== current()) prompt.textContent = current();
  prompt.lang = state.language;
  prompt.dir = state.direction;
  const done = take ? (take.advice ? `, recorded: ${take.advice}` : ", recorded") : "";
  place.textContent = `Sentence ${position + 1} of ${state.prompts.length}${done}`;
  byId("takes").hidden = byId("recordings").hidden = !state.takes.length;
  takeList.replaceChildren(...state.takes.map(takeItem));
  if (!byId("sheet").children.length) {
    byId("sheet").append(...state.prompts.map((text) => make("li", text, { lang: state.language, dir: state.direction })));
  }
  showMaking();
}

function showMaking() {
  const { running, phase, step, steps, seconds_left: left, error, voice, listening } = state.making;
  const count = state.takes.length, missing = state.fewest - count;
  const minutes = state.takes.reduce((sum, take) => sum + take.seconds, 0) / 60;
  const textContent = phase === "stopped" ? "Go on" : voice ? "Make it again with all takes" : "Make the voice";
  Object.assign(byId("make"), { textContent, hidden: running, disabled: missing > 0 });
  byId("stop").hidden = progress.hidden = !running;
  byId("listen").hidden = !listening;
  byId("speech").hidden = !voice;
  if (step) Object.assign(progress, { max: steps, value: step });
  else progress.removeAttribute("value");
  const recorded = `${count} sentences recorded, ${minutes.toFixed(1)} minutes.`;
  const ready = missing > 0 ? `${recorded} ${missing} more, and a voice can be made.` : recorded;
  const wait = left === null ? "" : left < 90 ? "about a minute left" : `about ${Math.round(left / 60)} minutes left`;
  const training = `Training: ${Math.floor((100 * step) / Math.max(steps, 1))}%, ${wait}. This page may be closed.`;
  const words = phase === "training" ? training : phase === "failed" ? `Failed: ${error}` : PHASES[phase];
  change(byId("making"), running ? words : `${words} ${ready}`.trim());
  const cut = state.phone, names = cut.numbers.length;
  change(byId("cutting"), {
    none: "", cutting: `Listening: ${cut.heard} of ${cut.pieces || "?"} pieces…`, failed: `Failed: ${cut.error}`,
    done: `${names} sentences were found, and are among the takes.`,
  }[cut.phase]);
}

// A live region speaks whenever it is set
function change(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

function takeItem(take) {
  const item = make("li", ""), words = make("div", "");
  const text = make("p", take.text, { lang: state.language, dir: state.direction });
  words.append(text, make("p", take.advice || `good, ${take.seconds} s`, { className: take.advice ? "wrong small" : "quiet small" }));
  if (take.heard && take.heard !== take.text) words.append(make("p", `Whisper heard: ${take.heard}`, { className: "quiet small" }));
  const button = (name, act) =>
    make("button", name, { className: "second low", ariaLabel: `${name} take ${take.number}: ${take.text}`, onclick: act });
  const where = state.prompts.indexOf(take.text);
  item.append(words, button("Play", () => play(take)));
  if (where >= 0 && microphone) item.append(button("Redo", () => go(where).then(record)));
  item.append(button("Remove", attempt(async () => {
    if (confirm(`Remove take ${take.number}?`)) await update(`api/takes/${take.number}`, "DELETE");
  })));
  return item;
}

// Saving: a take is kept by the browser until the server has stored it

const pathOf = (text) => `api/takes?prompt=${encodeURIComponent(text)}`;

async function save() {
  let problem = "", saved = null;
  for (const request of await unsaved.keys()) {
    const wav = await (await unsaved.match(request)).blob();
    try {
      await update(request.url, "POST", wav, "audio/wav");
      await unsaved.delete(request);
      saved = state.takes.find((take) => take.number === state.number);
    } catch (error) {
      problem = error.message;
    }
  }
  const left = (await unsaved.keys()).length;
  byId("unsaved").hidden = !left;
  byId("unsaved-words").textContent = `Not saved: ${left === 1 ? "one recording" : `${left} recordings`} (${problem}).`;
  return left ? null : saved;
}

// Reading

async function go(to) {
  if (microphone?.parts) return;
  position = (to + state.prompts.length) % state.prompts.length;
  show();
  prompt.focus();
}

function next() {
  const waiting = [...state.prompts.keys()].map((i) => (position + 1 + i) % state.prompts.length);
  return waiting.find((i) => !takeOf(state.prompts[i])) ?? position;
}

function watch(act, longest = Infinity) {
  let spoken = 0, quiet = 0;
  ending = (decibels, seconds) => {
    if (decibels > noise + ABOVE_NOISE) [spoken, quiet] = [spoken + seconds, 0];
    else quiet += seconds;
    if ((spoken < LEAST_SPEECH || quiet < PAUSE_SECONDS) && microphone.seconds < longest) return;
    ending = null;
    act();
  };
}

// Nothing is said while the microphone records: a screen reader would be recorded too
function record() {
  if (!microphone || microphone.parts) return;
  player.pause();
  microphone.start();
  reading.classList.add("recording");
  recordButton.firstChild.textContent = "Stop ";
  if (continuous.checked) watch(finish);
}

async function finish(goesOn = true) {
  if (!microphone?.parts || microphone.finish) return;
  ending = null;
  const text = current(), wav = await microphone.stop();
  reading.classList.remove("recording");
  recordButton.firstChild.textContent = "Record ";
  await unsaved.put(pathOf(text), new Response(wav));
  const take = await save();
  last = text;
  if (!take) return say("That recording is not saved yet.", true);
  if (take.advice) return say(`${take.advice} (R records it again, the right arrow goes on)`, true);
  const place = next();
  say(takeOf(state.prompts[place]) ? "Saved. All sentences are recorded." : `Saved, ${take.seconds} seconds.`);
  await go(place);
  if (continuous.checked && goesOn && !takeOf(current())) record();
}

function toggle() {
  if (microphone?.parts) finish(false);
  else if (takeOf(current())) say("This one is recorded: R records it again, S goes to the next that is not.");
  else record();
}

async function redo() {
  if (!takeOf(current()) && last) await go(state.prompts.indexOf(last));
  record();
}

function play(take = takeOf(current()) ?? takeOf(last)) {
  if (!take || microphone?.parts) return;
  player.src = `api/takes/${take.number}.wav?${Date.now()}`;
  player.play();
}

const ACTS = {
  record: ["Space", toggle], play: ["KeyP", () => play()], redo: ["KeyR", redo], skip: ["KeyS", () => go(next())],
  back: ["ArrowLeft", () => go(position - 1)], on: ["ArrowRight", () => go(position + 1)],
};
const KEYS = Object.fromEntries(Object.values(ACTS));
for (const [name, [, act]] of Object.entries(ACTS)) {
  byId(name).onclick = () => {
    prompt.focus(); // so that the next Space records
    act();
  };
}

document.addEventListener("keydown", (event) => {
  const act = KEYS[event.code], { target } = event;
  if (!act || reading.hidden || event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
  const types = target.matches("input:not([type=checkbox]), audio");
  if (types || (event.code === "Space" && target.matches("button, input, a, summary"))) return;
  event.preventDefault();
  act();
});

// The first step: microphone, silence, a sentence

async function test() {
  begin.disabled = byId("anyway").hidden = true;
  try {
    microphone ??= await Microphone.open(hear, gone);
    say("Be silent for five seconds.");
    microphone.start();
    const levels = [];
    await new Promise((resolve) => {
      ending = (decibels) => levels.push(decibels) && microphone.seconds >= SILENCE_SECONDS && resolve();
    });
    noise = levels.sort((a, b) => a - b)[levels.length >> 1]; // the median
    say(`Now read aloud: ${current()}`);
    const wav = await new Promise((resolve) => watch(() => resolve(microphone.stop()), LONGEST_TEST));
    const { good, words } = await (await ask("api/room", "POST", wav, "audio/wav")).json();
    const on = microphone.processing.join(" and ");
    const kept = on ? ` This browser keeps ${on} on; another may not.` : "";
    say(`${words}${kept}${good ? " Press Space to record, Space to stop." : ""}`, !good);
    byId("anyway").hidden = good;
    if (good) read();
  } catch (error) {
    say(`No microphone: ${error.message}. Allow it in the browser, or record on a phone, below.`, true);
  }
  begin.disabled = false;
  begin.textContent = "Check again";
}

function hear(decibels, seconds) {
  level.value = decibels;
  ending?.(decibels, seconds);
}

function gone() {
  microphone = null;
  begin.disabled = byId("start").hidden = false;
  say("The microphone has gone. Press Start to open it again.", true);
}

function read() {
  byId("start").hidden = true;
  reading.hidden = false;
  go(takeOf(current()) ? next() : position);
}

begin.onclick = test;
byId("anyway").onclick = read;

// Voice, phone

const act = (...asked) => attempt(() => update(...asked));
byId("make").onclick = act("api/voice", "POST");
byId("stop").onclick = act("api/voice", "DELETE");
byId("save-again").onclick = save;
byId("discard").onclick = async () => {
  for (const request of await unsaved.keys()) await unsaved.delete(request);
  byId("unsaved").hidden = true;
};
byId("print").onclick = () => print();

byId("speech").onsubmit = attempt(async (event) => {
  event.preventDefault();
  const answer = await ask("api/speech", "POST", JSON.stringify({ text: byId("text").value }), "application/json");
  player.src = URL.createObjectURL(await answer.blob());
  player.play();
});

const send = (file) => file && act("api/phone", "POST", file, "application/octet-stream")();
byId("file").onchange = (event) => send(event.target.files[0]);
for (const [name, over] of Object.entries({ dragover: true, dragleave: false, drop: false })) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    byId("phone").classList.toggle("drop", over);
    if (name === "drop") send(event.dataTransfer.files[0]);
  });
}

async function refresh() {
  if (microphone?.parts || !(state.making.running || state.phone.phase === "cutting")) return;
  await update("api/making").catch(() => {});
  if (state.phone.phase === "done") await update("api/state").catch(() => {});
}

attempt(async () => {
  await update("api/state");
  unsaved = await caches.open(`unsaved ${state.folder}`);
  if (takeOf(current())) position = next();
  say(state.takes.length ? "Press Start to go on." : "Press Start.");
  await save();
  show();
  setInterval(refresh, 1000);
  document.addEventListener("visibilitychange", () => document.hidden || microphone?.parts || act("api/state")());
})();

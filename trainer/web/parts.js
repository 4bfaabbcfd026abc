// What every page has: its elements, a line that says what happens, requests, wavs.
"use strict";

const byId = (name) => document.getElementById(name);

function say(words, wrong = false) {
  byId("status").textContent = words;
  byId("status").classList.toggle("wrong", wrong);
}

const make = (tag, textContent, more) => Object.assign(document.createElement(tag), { textContent, ...more });

// The answer to a request; signal: of an AbortController, if it may be broken off
async function ask(path, method = "GET", body, type, signal) {
  const headers = type ? { "Content-Type": type } : {}, token = sessionStorage.getItem("token");
  if (token) headers.Authorization = `Bearer ${token}`;
  const answer = await fetch(path, { method, headers, body, signal });
  if (answer.ok) return answer;
  if (answer.status === 401) byId("token-field").hidden = false;
  const refusal = await answer.json().catch(() => null);
  throw new Error(refusal?.error?.message ?? `status ${answer.status}`);
}

const WAV_HEAD = 44; // bytes before the samples

// A wav of 16 bits, of one channel, from Int16Arrays
function wavOf(parts, rate) {
  const size = parts.reduce((sum, part) => sum + part.byteLength, 0);
  const view = new DataView(new ArrayBuffer(WAV_HEAD));
  const letters = (at, word) => [...word].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
  letters(0, "RIFF"); view.setUint32(4, 36 + size, true); letters(8, "WAVEfmt ");
  view.setUint32(16, 16, true); view.setUint16(20, 1, true); view.setUint16(22, 1, true);
  view.setUint32(24, rate, true); view.setUint32(28, 2 * rate, true);
  view.setUint16(32, 2, true); view.setUint16(34, 16, true);
  letters(36, "data"); view.setUint32(40, size, true);
  return new Blob([view.buffer, ...parts], { type: "audio/wav" });
}

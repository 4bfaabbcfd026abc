// Hands the microphone's samples to the page, 1,024 at a time, as they are.
"use strict";

class Samples extends AudioWorkletProcessor {
  block = new Float32Array(1024);
  filled = 0;
  process([[channel]]) {
    if (!channel) return true;
    this.block.set(channel, this.filled);
    this.filled = (this.filled + channel.length) % this.block.length;
    if (!this.filled) this.port.postMessage(this.block);
    return true;
  }
}

registerProcessor("samples", Samples);

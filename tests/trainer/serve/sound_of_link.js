(async () => {
  const bytes = await (await fetch(LINK.href)).arrayBuffer();
  const copy = Array.from(new Uint8Array(bytes));
  const sound = await new AudioContext({sampleRate: 22050}).decodeAudioData(bytes);
  const loudest = sound.getChannelData(0).reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
  return {bytes: copy, seconds: sound.duration, loudest};
})()

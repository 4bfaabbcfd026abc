window.loud = 0;
const before = microphone.onlevel;
microphone.onlevel = (decibels, seconds) => {
  before(decibels, seconds);
  if (decibels > -45) window.loud = performance.now();
};

// Measures how fast this machine is right now: the milliseconds that a fixed piece of work takes. On shared cores, the same
// work takes twice the processor time or more while others are busy.
const TEXT = JSON.stringify(Array.from({ length: 4_000 }, (_, index) => ({ index, text: "some words" })));

/** The median of a few tries, or the best: an interrupted try is slow for another reason. */
export function measurePace(tries, pick = "middle") {
  const times = [];
  for (let index = 0; index < tries; index += 1) {
    const begun = performance.now();
    JSON.parse(TEXT);
    times.push(performance.now() - begun);
  }
  times.sort((a, b) => a - b);
  return pick === "best" ? times[0] : times[tries >> 1];
}

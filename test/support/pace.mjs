// How fast this machine is at the moment: the time for a fixed piece of work, in milliseconds. A machine whose cores are shared
// does the same work in twice the processor time and more when the others are at work too.
const TEXT = JSON.stringify(Array.from({ length: 4_000 }, (_, index) => ({ index, text: "some words" })));

/** The middle of a few tries, or the best of them: whoever was interrupted during one is slow for another reason. */
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

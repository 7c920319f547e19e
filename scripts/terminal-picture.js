// Draws a picture of a real terminal: `io` in tmux, on the rehearsal model and the tour's sample project, with a few lines typed.
//   node scripts/terminal-picture.js docs/terminal.svg "hello" "form a squad here"
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const [target, ...lines] = process.argv.slice(2);
if (!target) throw new Error("usage: terminal-picture.js <file.svg> <line>…");
const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const [COLUMNS, ROWS] = [92, 34];
const place = mkdtempSync(join(tmpdir(), "io-picture-"));
const io = [process.execPath, join(root, "bin", "io.js")];
const env = {
  PATH: process.env.PATH,
  HOME: place,
  IO_ENGINE: "rehearsal",
  IO_PORT: "0",
  LANG: "C.UTF-8",
  TERM: "xterm-256color",
};
const run = (file, args, options = {}) => execFileSync(file, args, { encoding: "utf8", env, ...options });
const tmux = (...args) => run("tmux", ["-S", join(place, "tmux"), ...args]);
const screen = () => tmux("capture-pane", "-t", "t", "-p");

try {
  run(io[0], [io[1], "tour", "--folder", join(place, "sample")], { stdio: "ignore" });
  run(io[0], [io[1], "start"], { stdio: "ignore" });
  tmux("new-session", "-d", "-s", "t", "-x", `${COLUMNS}`, "-y", `${ROWS}`, "-c", join(place, "sample", "greeter"), ...io);
  await still();
  for (const line of lines) {
    tmux("send-keys", "-t", "t", "-l", line);
    tmux("send-keys", "-t", "t", "Enter");
    await still();
  }
  writeFileSync(target, svg(screen().replaceAll(place, "~").trimEnd().split("\n")));
} finally {
  try {
    tmux("kill-server");
    run(io[0], [io[1], "stop"], { stdio: "ignore" });
  } catch {
    // It did not start, or has already ended.
  }
  rmSync(place, { recursive: true, force: true, maxRetries: 5 });
}

/** Waits until nothing has changed for 2.5 seconds. */
async function still() {
  for (let [before, since] = ["", Date.now()]; Date.now() - since < 2_500; await sleep(100)) {
    const now = screen();
    if (now !== before) [before, since] = [now, Date.now()];
  }
}

function svg(text) {
  const [width, height] = [COLUMNS * 8.43 + 32, text.length * 18 + 52];
  const escaped = (line) => line.replace(/[<>&]/g, (letter) => `&#${letter.charCodeAt(0)};`);
  const drawn = text.map((line, index) => `<text x="16" y="${50 + index * 18}" xml:space="preserve">${escaped(line)}</text>`);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="IO in a terminal" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14" fill="#d8dee9">
<rect width="${width}" height="${height}" rx="8" fill="#1b1f27"/>
<circle cx="20" cy="18" r="5" fill="#e06c75"/><circle cx="38" cy="18" r="5" fill="#e5c07b"/><circle cx="56" cy="18" r="5" fill="#98c379"/>
${drawn.join("\n")}
</svg>
`;
}

import { expect, test } from "vitest";
import { sandboxHint } from "../../src/tools/sandbox-hints.ts";

const hint = (command: string, code: number, output: string) => sandboxHint(command, { code, output }, "/code/app").join("\n");

test.each([
  "touch: cannot touch '/x': Read-only file system",
  "npm error code EROFS",
  "Error: Read-only filesystem (os error 30)",
  "touch: '/x' kann nicht berührt werden: Das Dateisystem ist nur lesbar",
  "touch: impossible: Système de fichiers accessible en lecture seulement",
  "bash: /x: Sistema de ficheros de sólo lectura",
  "bash: /x: Sistema de archivos de solo lectura",
  "bash: /x: File system in sola lettura",
  "bash: /x: Sistema de ficheiros só de leitura",
  "bash: /x: Sistema de arquivos somente para leitura",
  "bash: /x: 読み込み専用ファイルシステムです",
  "bash: /x: 只读文件系统",
])("a command that failed so is told that the sandbox refused it, and one that ended well that it may have: %s", (output) => {
  const refused = hint("npm i", 1, output);
  expect(refused).toContain("The sandbox refused this: commands write in /code/app");
  expect(refused).toContain("outside: true, and a person is asked.");
  expect(hint("npm i 2>&1 | tail", 0, output)).toContain("The sandbox may have refused a part of this");
});

test.each([
  ["docker compose up -d", 1, "failed", "Containers cannot be reached"],
  ["cd x && sudo podman run a", 125, "", "Containers cannot be reached"],
  ["npm test", 1, "Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", "Containers cannot be reached"],
  ["npm test | tail", 0, "Cannot connect to the Docker daemon at unix:///x.", "Containers cannot be reached"],
  ["git commit -m x", 128, "error: gpg failed to sign the data\nfatal: failed to write commit object", "Private keys are hidden"],
  ["mv a ~/.cache/b", 1, "mv: Invalid cross-device link", "The sandbox may have refused a part of this"],
])("a command that the sandbox is in the way of is told what to do: %s (%i)", (command, code, output, expected) => {
  expect(hint(command, code, output)).toContain(expected);
  expect(hint(command, code, output)).toContain("outside: true, and a person is asked.");
});

test.each([
  ["grep docker README.md", 1, ""],
  ["docker --version", 0, "Docker version 28"],
  ["npm test", 1, "expected 1 to be 2"],
  ["echo hello", 0, "hello"],
])("nothing is said of the sandbox where it was not in the way: %s (%i)", (command, code, output) => {
  expect(hint(command, code, output)).toBe("");
});

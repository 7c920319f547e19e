import { rmSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { exec } from "../../src/process/exec.ts";
import { type AtTheEnd, temporaryFolder } from "./home.ts";

/** A separate file system that is small, or can be made read-only, so that writes fail. */
export interface SmallDisk {
  folder: string;
  /** The file that `fill` writes. */
  ballast: string;
  /** Fills the disk completely. */
  fill(): Promise<void>;
  free(): void;
  /** Makes the disk read-only; `open` makes it writable again. */
  close(): Promise<void>;
  open(): Promise<void>;
}

/** The suite runs as root, because only root may mount. For other users the test fails and says why. */
export async function smallDisk(
  megabytes: number,
  atTheEnd: AtTheEnd = onTestFinished,
  { files = 0 }: { files?: number } = {},
): Promise<SmallDisk> {
  const folder = temporaryFolder(atTheEnd);
  const ballast = join(folder, "ballast");
  const mount = async (...args: string[]) => {
    const done = await exec("mount", [...args, folder]);
    if (done.code !== 0) throw new Error(`a small disk is needed for this test: ${done.output}`);
  };
  await mount("-t", "tmpfs", "-o", `size=${megabytes}m,nr_inodes=${files},mode=0700`, "tmpfs");
  atTheEnd(async () => void (await exec("umount", ["-l", folder])));
  return {
    folder,
    ballast,
    fill: async () => void (await exec("dd", ["if=/dev/zero", `of=${ballast}`, "bs=4k", "oflag=append", "conv=notrunc"])),
    free: () => rmSync(ballast, { force: true }),
    close: () => mount("-o", "remount,ro"),
    open: () => mount("-o", "remount,rw"),
  };
}

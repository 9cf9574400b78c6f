import { ports } from "@portico/core";
import { RUN_FILES_MOST } from "../limits.ts";
import type { FilesUsage, RunFiles } from "./run-files.ts";

/** Maximum bytes of one file, and of all files that a run has. */
export interface FileLimits {
  readonly maxBytes: number;
  readonly maxRunBytes: number;
}

/** The place of one file among those of its run. */
export type FilePlace = ReturnType<ReturnType<typeof createFileRoom>["take"]>;

/** Counts the files of a run. One execution counts, because only it adds files. Nodes that add files at the same time count together. */
export function createFileRoom(files: RunFiles, runId: string, { maxBytes, maxRunBytes }: FileLimits) {
  let counted: Promise<{ count: number; bytes: number }> | undefined;
  const used = () =>
    (counted ??= files.usage(runId).then(
      (usage) => ({ ...usage }),
      (error: unknown) => {
        counted = undefined;
        throw error;
      },
    ));
  /** Counts files that the run got, or lost. Before the first count, there is nothing to correct. */
  const note = async ({ count, bytes }: FilesUsage, sign: 1 | -1): Promise<void> => {
    const usage = await counted;
    if (!usage) return;
    usage.count += sign * count;
    usage.bytes += sign * bytes;
  };
  const runTooLarge = () => failed("run_files_too_large", `The files of a run have at most ${inWords(maxRunBytes)}`);

  return {
    used,
    note,
    /** Takes the place of one more file. `usage` is the result of `used`. Throws NodeFailed if the run has its most files. */
    take(usage: { count: number; bytes: number }) {
      if (usage.count >= RUN_FILES_MOST) throw failed("too_many_files", `A run has at most ${RUN_FILES_MOST} files`);
      const left = Math.max(0, maxRunBytes - usage.bytes);
      let taken = 0;
      usage.count++;
      return {
        /** Maximum bytes of this file. */
        maxBytes: Math.min(maxBytes, left),
        /** Why the file has too many bytes. */
        tooLarge: () =>
          left < maxBytes ? runTooLarge() : failed("file_too_large", `A file of a run has at most ${inWords(maxBytes)}`),
        /** Counts the file's bytes once they are known. Returns the failure if other nodes have used the room meanwhile. */
        fill(size: number): ports.NodeFailed | undefined {
          if (usage.bytes + size > maxRunBytes) return runTooLarge();
          taken = size;
          usage.bytes += size;
          return undefined;
        },
        /** For a file that the run does not get. */
        giveBack(): void {
          usage.count--;
          usage.bytes -= taken;
          taken = 0;
        },
      };
    },
  };
}

/** A failure of a node that a retry cannot mend. */
export function failed(code: string, message: string): ports.NodeFailed {
  return new ports.NodeFailed(code, message, { retryable: false });
}

function inWords(bytes: number): string {
  const mebibytes = bytes / 1024 / 1024;
  return mebibytes >= 1 ? `${Math.round(mebibytes * 10) / 10} MiB` : `${bytes} bytes`;
}

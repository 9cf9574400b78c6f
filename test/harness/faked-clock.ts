import { globSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The clock of processes that are started with its environment. Their timers are not affected. */
export interface FakedClock {
  /** For processes that a test starts. */
  readonly env: Readonly<Record<string, string>>;
  /** Set the clock ahead of this machine's by this number of seconds, also in processes that run. */
  set(secondsAhead: number): void;
}

/** The library of Debian's package `faketime`. Undefined without it. With `CI` set, its absence is an error. */
export function fakeTimeLibrary(): string | undefined {
  const [found] = globSync("/usr/lib/*/faketime/libfaketime.so.1");
  if (found === undefined && process.env["CI"]) throw new Error("CI has to have faketime");
  return found;
}

/** A clock whose state is a file of this folder. It begins ahead by this number of seconds. */
export function fakedClock(folder: string, name: string, secondsAhead: number): FakedClock {
  const file = join(folder, `${name}.clock`);
  const set = (seconds: number) => writeFileSync(file, `${seconds < 0 ? "" : "+"}${seconds}\n`);
  set(secondsAhead);
  return {
    env: {
      LD_PRELOAD: fakeTimeLibrary()!,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    },
    set,
  };
}

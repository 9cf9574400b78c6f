import { closeSync, openSync, statSync, unlinkSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { isAbsent } from "./real-path.ts";

/** A claim lasts for a few system calls. An older claim is of a process that was killed meanwhile. */
const LEFT_BEHIND_MS = 10_000;
const LOOK_AGAIN_MS = 10;

/** Runs `change`, which must be synchronous, while no other process that claims the same file does so. */
export async function whileClaimed(claim: string, change: () => void): Promise<void> {
  while (!isTaken(claim)) await sleep(LOOK_AGAIN_MS);
  try {
    change();
  } finally {
    dropClaim(claim);
  }
}

function isTaken(claim: string): boolean {
  try {
    closeSync(openSync(claim, "wx"));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  if (isLeftBehind(claim)) dropClaim(claim);
  return false;
}

function isLeftBehind(claim: string): boolean {
  const found = statSync(claim, { throwIfNoEntry: false });
  return found !== undefined && found.mtimeMs < Date.now() - LEFT_BEHIND_MS;
}

function dropClaim(claim: string): void {
  try {
    unlinkSync(claim);
  } catch (error) {
    if (!isAbsent(error)) throw error;
  }
}

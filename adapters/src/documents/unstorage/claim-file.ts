import { randomBytes } from "node:crypto";
import { readFileSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { ports } from "@portico/core";
import { isAbsent } from "./real-path.ts";

/** A claim lasts for a few system calls. An older claim is of a process that was killed or stopped meanwhile. */
const LEFT_BEHIND_MS = 10_000;
const LOOK_AGAIN_MS = 10;
/** Longer than it takes until a claim counts as left behind, also one whose clock is ahead. */
const PATIENCE_MS = 30_000;

/**
 * Runs `change`, which must be synchronous, while no other process that claims the same file does so. `change` calls `assertHeld` right before it
 * writes: a process that was stopped for long may have lost its claim. Both throw DocumentsUnavailable.
 */
export async function whileClaimed(
  claim: string,
  change: (assertHeld: () => void) => void,
  patienceMs = PATIENCE_MS,
): Promise<void> {
  const token = randomBytes(16).toString("hex");
  const giveUpAt = performance.now() + patienceMs;
  while (!isTaken(claim, token)) {
    if (performance.now() >= giveUpAt) throw new ports.DocumentsUnavailable("Other processes do not stop changing a document");
    await sleep(LOOK_AGAIN_MS);
  }
  try {
    change(() => {
      if (tokenIn(claim) !== token) throw new ports.DocumentsUnavailable("This process was stopped while it changed a document");
    });
  } finally {
    endClaim(claim, token);
  }
}

function isTaken(claim: string, token: string): boolean {
  // The claim is read back: before the token was written, it may have been taken for one that was left behind.
  if (isMade(claim, token)) return tokenIn(claim) === token;
  const holder = tokenIn(claim);
  if (holder !== undefined && isLeftBehind(claim)) endClaim(claim, holder, () => isLeftBehind(claim));
  return false;
}

/**
 * Removes the claim with this token. Only the process that has made a second file, named after the token, may do so. Without it, a claim that
 * another process makes between the look and the removal would be removed.
 */
function endClaim(claim: string, token: string, isDue = () => true): void {
  const right = `${claim}-${token}`;
  if (!isMade(right, "")) {
    // Its process was killed between two system calls.
    if (isLeftBehind(right)) drop(right);
    return;
  }
  try {
    if (tokenIn(claim) === token && isDue()) drop(claim);
  } finally {
    drop(right);
  }
}

function isMade(path: string, text: string): boolean {
  try {
    writeFileSync(path, text, { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return false;
  }
}

/** Undefined without a claim, empty for a claim without a valid token. */
function tokenIn(claim: string): string | undefined {
  try {
    return /^[0-9a-f]{32}$/.exec(readFileSync(claim, "latin1"))?.[0] ?? "";
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

/** A time far in the future is of a wrong clock. */
function isLeftBehind(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found !== undefined && Math.abs(Date.now() - found.mtimeMs) > LEFT_BEHIND_MS;
}

function drop(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (!isAbsent(error)) throw error;
  }
}

import fs, { readdirSync, readFileSync, unlinkSync, utimesSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { ports } from "@portico/core";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { whileClaimed } from "../../adapters/src/documents/unstorage/claim-file.ts";
import { temporaryFolder } from "../harness/portico-process.ts";

/** Runs once, after the time of a claim was read and before the reader uses it. */
const between = { run: undefined as (() => void) | undefined };
beforeAll(() => {
  const original = fs.statSync;
  vi.spyOn(fs, "statSync").mockImplementation(((...given: Parameters<typeof original>) => {
    const found = original(...given);
    const { run } = between;
    between.run = undefined;
    run?.();
    return found;
  }) as typeof original);
  syncBuiltinESMExports();
});
afterAll(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

const ANOTHER = "0123456789abcdef".repeat(2);
const folder = temporaryFolder();
afterAll(() => folder.remove());
let claims = 0;
let claim: string;
beforeEach(() => {
  claim = join(folder.path, `claim-${++claims}`);
});

/** A claim that a process made this long ago. */
function leave(token: string, agoMs: number): void {
  writeFileSync(claim, token);
  const at = (Date.now() - agoMs) / 1000;
  utimesSync(claim, at, at);
}

describe("the claim of a document", () => {
  it.each([
    ["a minute ago", ANOTHER, 60_000],
    ["a minute ago by an earlier version, without a token", "", 60_000],
    ["by a process whose clock is an hour ahead", ANOTHER, -3_600_000],
  ])("that was left behind %s is taken over", async (_when, token, agoMs) => {
    leave(token, agoMs);
    let inside = "";
    await whileClaimed(claim, () => (inside = readFileSync(claim, "utf8")));
    expect(inside).toMatch(/^[0-9a-f]{32}$/);
    expect(inside).not.toBe(token);
    expect(readdirSync(folder.path)).toEqual([]);
  });

  it("of a process that works is not removed: the wait ends with DocumentsUnavailable", async () => {
    leave(ANOTHER, 0);
    const change = vi.fn();
    await expect(whileClaimed(claim, change, 50)).rejects.toThrow(ports.DocumentsUnavailable);
    expect(change).not.toHaveBeenCalled();
    expect(readFileSync(claim, "utf8")).toBe(ANOTHER);
    unlinkSync(claim);
  });

  it("that a process makes anew is not removed by another process that still sees the one left behind", async () => {
    leave("f".repeat(32), 60_000);
    between.run = () => {
      unlinkSync(claim);
      leave(ANOTHER, 0);
    };
    await expect(whileClaimed(claim, () => {}, 50)).rejects.toThrow(ports.DocumentsUnavailable);
    expect(readFileSync(claim, "utf8")).toBe(ANOTHER);
    unlinkSync(claim);
  });

  it("of the next process stays if the process before was stopped, which then writes nothing", async () => {
    let isWritten = false;
    const change = (assertHeld: () => void) => {
      // Another process took the claim over while this one was stopped.
      unlinkSync(claim);
      leave(ANOTHER, 0);
      assertHeld();
      isWritten = true;
    };
    await expect(whileClaimed(claim, change)).rejects.toThrow(ports.DocumentsUnavailable);
    expect([isWritten, readFileSync(claim, "utf8")]).toEqual([false, ANOTHER]);
    unlinkSync(claim);
  });
});

import { setImmediate as nextTurn } from "node:timers/promises";
import { readOncePerTurn } from "@portico/core";
import { describe, expect, it } from "vitest";

describe("readOncePerTurn", () => {
  it("reads once for all who ask for a key in one turn, after the turn; every key for itself", async () => {
    let stored = "before";
    const keys: string[] = [];
    const find = readOncePerTurn(async (key) => {
      keys.push(key);
      return `${key} ${stored}`;
    });
    const asked = [find("one"), find("two"), find("one")];
    stored = "after";
    expect(await Promise.all(asked)).toEqual(["one after", "two after", "one after"]);
    expect(keys).toEqual(["one", "two"]);
  });

  it("reads again for who asks while a read is under way", async () => {
    const open: ((value: string) => void)[] = [];
    const find = readOncePerTurn(() => new Promise<string>((resolve) => open.push(resolve)));
    const early = find("one");
    await nextTurn();
    const late = find("one");
    await nextTurn();
    expect(open).toHaveLength(2);
    open[1]!("new");
    open[0]!("old");
    expect(await Promise.all([early, late])).toEqual(["old", "new"]);
  });

  it("rejects for all who share a read that fails, and reads again for the next", async () => {
    let isAway = true;
    const find = readOncePerTurn(async () => {
      if (isAway) throw new Error("The store is away");
      return "found";
    });
    const settled = await Promise.allSettled([find("one"), find("one")]);
    expect(settled.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    isAway = false;
    expect(await find("one")).toBe("found");
  });
});

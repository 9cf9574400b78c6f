import { createLive, selectLive } from "@portico/core";
import { describe, expect, it } from "vitest";

describe("a live value", () => {
  it("is replaced in all followers, or in none", async () => {
    const live = createLive(1);
    const told: string[] = [];
    live.follow((next) => () => void told.push(`first ${next}`));
    const end = live.follow(async (next) => {
      if (next === 2) throw new Error("refused");
      return () => void told.push(`second ${next}`);
    });
    await expect(live.replace(2)).rejects.toThrow("refused");
    expect([live.current, told]).toEqual([1, []]);
    await live.replace(3);
    expect([live.current, told]).toEqual([3, ["first 3", "second 3"]]);
    end();
    await live.replace(2);
    expect([live.current, told]).toEqual([2, ["first 3", "second 3", "first 2"]]);
  });

  it("is replaced in the order of the calls, however long a follower checks", async () => {
    const live = createLive(0);
    const told: number[] = [];
    live.follow(async (next) => {
      await new Promise((resolve) => setTimeout(resolve, next === 1 ? 20 : 0));
      return () => void told.push(next);
    });
    await Promise.all([live.replace(1), live.replace(2)]);
    expect([live.current, told]).toEqual([2, [1, 2]]);
  });

  it("has parts, which follow the whole", async () => {
    const live = createLive({ name: "a", size: 1 });
    const name = selectLive(live, (whole) => whole.name);
    const told: string[] = [];
    name.follow((next) => () => void told.push(next));
    await live.replace({ name: "b", size: 2 });
    expect([name.current, told]).toEqual(["b", ["b"]]);
  });
});

import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { pagePace as PagePace, Paced } from "../../../console/src/api/page-pace.ts";

const MINUTE_MS = 60_000;

describe("the pace of a page of the web console", () => {
  const document = Object.assign(new EventTarget(), { hidden: false });
  const window = new EventTarget();
  let pace: typeof PagePace;
  beforeAll(async () => {
    vi.useFakeTimers();
    vi.stubGlobal("document", document);
    vi.stubGlobal("addEventListener", window.addEventListener.bind(window));
    ({ pagePace: pace } = await import("../../../console/src/api/page-pace.ts"));
  });
  afterAll(() => {
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });

  /** Data that costs as many requests, and the number of its requests. */
  function data(requests: number) {
    let sent = 0;
    const paced: Paced = {
      whileHidden: true,
      isDue: () => true,
      async refresh() {
        sent += requests;
        for (let count = 0; count < requests; count++) pace.requested();
        pace.read(paced, false);
      },
    };
    return { paced, sent: () => sent };
  }

  it("asks three times in a minute when it is idle, however much it asked while it was used", () => {
    const { paced, sent } = data(1);
    const leave = pace.add(paced);
    window.dispatchEvent(new Event("keydown"));
    for (let count = 0; count < 200; count++) pace.requested();
    vi.advanceTimersByTime(2 * MINUTE_MS);
    const before = sent();
    vi.advanceTimersByTime(5 * MINUTE_MS);
    leave();
    expect(sent() - before).toBeGreaterThanOrEqual(14);
    expect(sent() - before).toBeLessThanOrEqual(15);
  });

  it("asks a hidden page that rarely too, and at once when it is seen again", () => {
    const { paced, sent } = data(2);
    const leave = pace.add(paced);
    document.hidden = true;
    vi.advanceTimersByTime(10 * MINUTE_MS);
    expect(sent()).toBeGreaterThanOrEqual(28);
    expect(sent()).toBeLessThanOrEqual(32);
    const before = sent();
    document.hidden = false;
    document.dispatchEvent(new Event("visibilitychange"));
    leave();
    expect(sent()).toBe(before + 2);
  });

  it("asks again after some minutes where many requests failed", () => {
    const { paced, sent } = data(1);
    vi.advanceTimersByTime(2 * MINUTE_MS);
    for (let count = 0; count < 500; count++) pace.requested();
    const leave = pace.add(paced);
    vi.advanceTimersByTime(4 * MINUTE_MS);
    leave();
    expect(sent()).toBeGreaterThan(0);
  });
});

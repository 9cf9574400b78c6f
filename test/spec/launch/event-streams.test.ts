import { systemClock } from "@portico/adapters/clock/system";
import { createApp, defineContract, definePlugin, reply } from "@portico/core";
import * as v from "valibot";
import { afterEach, describe, expect, it } from "vitest";
import { type Listeners, openListeners } from "../../../presets/cli/src/listeners.ts";

/** Longer than any test: who waits for it, hangs. */
const GRACE_MS = 60_000;

const contract = defineContract(
  { surface: "agent", auth: "open", envelope: ({ code }) => ({ error: code }) },
  {
    news: {
      method: "GET",
      path: "/news",
      summary: "News for as long as one listens",
      success: reply.events({ news: v.object({ n: v.number() }) }),
    },
  },
);

let close: () => Promise<void>;
afterEach(() => close());

/** A listener with one event stream that is open, and what makes its events. */
async function start() {
  let tell: (n: number) => void = () => {};
  const plugin = definePlugin({
    name: "news",
    config: v.strictObject({}),
    needs: {},
    contract,
    setup: () => ({
      async *news({ say, signal }) {
        yield say.news({ n: 0 });
        while (!signal.aborted) {
          const n = await new Promise<number | undefined>((resolve) => {
            tell = resolve;
            signal.addEventListener("abort", () => resolve(undefined), { once: true });
          });
          if (n !== undefined) yield say.news({ n });
        }
      },
    }),
  });
  const app = await createApp({ name: "news", adapters: [systemClock()], plugins: [plugin({})] });
  close = () => app.close();
  const listeners: Listeners = await openListeners(app, { addresses: { agent: { host: "127.0.0.1", port: 0 } } });
  const reader = (await fetch(`${listeners.urls["agent"]}/news`)).body!.getReader();
  const next = async () => new TextDecoder().decode((await reader.read()).value);
  expect(await next()).toContain('{"n":0}');
  return { listeners, next, tell: (n: number) => tell(n) };
}

describe("a listener with an open event stream that stops (open points 1)", () => {
  it("does not wait for it: the stream ends normally, and does not count as a cut request", async () => {
    const { listeners, next } = await start();
    const drained = listeners.drain(GRACE_MS);
    expect(await next()).toBe("");
    expect(await drained).toBe(0);
  });

  it("lets it send events until accepted work has ended", async () => {
    const { listeners, next, tell } = await start();
    const working = Promise.withResolvers<void>();
    const drained = listeners.drain(GRACE_MS, working.promise);
    // Long enough to be looked at several times.
    await new Promise((resolve) => setTimeout(resolve, 150));
    tell(1);
    expect(await next()).toContain('{"n":1}');
    working.resolve();
    tell(2);
    expect(await next()).toContain('{"n":2}');
    expect(await next()).toBe("");
    expect(await drained).toBe(0);
  });

  it("ends it also where work goes on for longer than it may", async () => {
    const { listeners, next } = await start();
    const working = Promise.withResolvers<void>();
    const drained = listeners.drain(100, working.promise);
    expect(await next()).toBe("");
    working.resolve();
    expect(await drained).toBe(0);
  });
});

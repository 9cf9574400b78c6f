import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { ports, Secret } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { gateway, type GatewayOptions } from "../../../playground/own-provider.ts";
import { openAdapter } from "../../conformance/open-adapter.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";

const HOUR_MS = 3_600_000;

describe("a provider that has to be signed in to", () => {
  let upstream: FakeUpstream;
  beforeEach(async () => {
    upstream = await startFakeUpstream();
  });
  afterEach(() => upstream.close());

  const open = async (signIn: GatewayOptions["signIn"]) => {
    const clock = createManualClock();
    const options = { id: "house", type: "gateway", baseUrl: upstream.baseUrl, models: ["m"], signIn };
    const { port, close } = await openAdapter(gateway(options), [manualClock({ clock })]);
    const body = Buffer.from('{"model":"m"}');
    const send = async (signal = new AbortController().signal) => {
      const answer = await port.send({ headers: {}, query: "", body }, signal);
      answer.body.resume();
    };
    return { port, close, clock, send, sent: () => upstream.requests.map(({ headers }) => headers["authorization"]) };
  };
  /** A token per call: `token-1`, `token-2`, … */
  const counting = () => {
    let count = 0;
    return async () => ({ token: new Secret(`token-${++count}`), expiresInMs: HOUR_MS });
  };

  it("is signed in to once for concurrent callers, and again before the token expires", async () => {
    const { send, sent, clock, close } = await open(counting());
    await Promise.all([send(), send(), send()]);
    await clock.jump(HOUR_MS / 2);
    await send();
    expect(sent()).toEqual(Array(4).fill("Bearer token-1"));
    await clock.jump(HOUR_MS / 2 - 1_000);
    await send();
    expect(sent().at(-1)).toBe("Bearer token-2");
    await close();
  });

  it("hides the token that it has, and the one before", async () => {
    const { port, send, clock, close } = await open(counting());
    await send();
    await clock.jump(HOUR_MS);
    await send();
    expect(port.redact("token-1 and token-2")).toBe("*** and ***");
    await close();
  });

  it("is unreachable if the sign-in fails, and the next call tries again", async () => {
    const answers = [Promise.reject(new Error("secret-word")), Promise.resolve({ token: new Secret("t"), expiresInMs: HOUR_MS })];
    const { send, sent, close } = await open(() => answers.shift()!);
    const failed = await send().catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(ports.ModelUnreachable);
    expect(String(failed)).not.toContain("secret-word");
    await send();
    expect(sent()).toEqual(["Bearer t"]);
    await close();
  });

  it("a caller that aborts does not end the sign-in that another waits for", async () => {
    const signedIn = Promise.withResolvers<{ token: Secret; expiresInMs: number }>();
    const { send, sent, close } = await open(() => signedIn.promise);
    const leaving = new AbortController();
    const reason = new Error("gone");
    const left = send(leaving.signal).catch((error: unknown) => error);
    const stays = send();
    leaving.abort(reason);
    expect(await left).toBe(reason);
    signedIn.resolve({ token: new Secret("late"), expiresInMs: HOUR_MS });
    await stays;
    expect(sent()).toEqual(["Bearer late"]);
    await close();
  });
});

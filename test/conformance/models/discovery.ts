import { ports } from "@portico/core";
import { describe, expect, it } from "vitest";
import type { Answer } from "../../harness/upstream-exchange.ts";
import { createGate } from "../../harness/gate.ts";
import { CUT, hangUp, html, json, never, after as onceReady, raw, stream } from "../../harness/upstream-answers.ts";
import { isDiscreet } from "./breaks.ts";
import { RULES } from "./rules.ts";
import { CREDENTIAL, failureOf, type OpenSubject, TIMEOUTS } from "./subject.ts";

const DISCOVERING = { setting: { models: "discover" as const } };
const HOUR_MS = 3_600_000;

/** `models: "discover"`: the upstream's own list, read seldom, and kept as long as there is no newer one. */
export function describeDiscovery(open: OpenSubject, freshMs: number): void {
  const start = () => open({ models: ["small", "large", "vendor/odd:name"], ...DISCOVERING });

  describe("discovered models", () => {
    it("are the upstream's own, in its order, asked for with the credential", async () => {
      const { provider, upstream } = await start();
      expect(await provider.listModels()).toEqual(["small", "large", "vendor/odd:name"]);
      const { method, url, headers } = await upstream.request();
      expect([method, url]).toEqual(["GET", "/v1/models"]);
      expect(Object.values(headers).some((value) => String(value).includes(CREDENTIAL))).toBe(true);
    });

    it("say how many tokens they accept where the upstream's list does, by the names that services use", async () => {
      const { provider, upstream } = await start();
      const listed = [
        { id: "plain" },
        { id: "messages", max_input_tokens: 200_000, max_tokens: 64_000 },
        { id: "router", context_length: 131_072 },
        { id: "local", max_context_length: 131_072, loaded_context_length: 8192 },
        { id: "server", max_model_len: 32_768 },
        { id: "odd", context_length: "many", context_window: -1 },
      ];
      upstream.answerAll(json(200, { data: listed }));
      const told = await Promise.all(listed.map(({ id }) => provider.contextTokens!(id)));
      expect(told).toEqual([undefined, 200_000, 131_072, 8192, 32_768, undefined]);
      expect(await provider.contextTokens!("none")).toBeUndefined();
      expect(upstream.requests, RULES.requests(1)).toHaveLength(1);
    });

    it("are not fetched before the first call needs them", async () => {
      const { send, upstream } = await start();
      await send();
      expect(upstream.requests.map(({ method }) => method)).toEqual(["POST"]);
    });

    it("are believed for a while, and then read again", async () => {
      const { provider, upstream, pass } = await start();
      await provider.listModels();
      upstream.answerAll(listOf("new"));
      await pass(freshMs * 0.9);
      expect(await provider.listModels()).toContain("small");
      expect(upstream.requests, RULES.requests(1)).toHaveLength(1);
      await pass(freshMs * 0.2);
      expect(await provider.listModels()).toEqual(["new"]);
      expect(upstream.requests, RULES.requests(2)).toHaveLength(2);
    });

    it("are fetched once for concurrent callers", async () => {
      const { provider, upstream } = await start();
      const asked = await Promise.all(Array.from({ length: 20 }, () => provider.listModels()));
      expect(new Set(asked.map(String)).size).toBe(1);
      expect(upstream.requests, RULES.requests(1)).toHaveLength(1);
    });

    it("reach the other callers when one aborts", async () => {
      const { provider, upstream } = await start();
      const ready = createGate();
      upstream.answerNext(onceReady(ready.opened, listOf("late")));
      const leaving = new AbortController();
      const leaver = failureOf(provider.listModels(leaving.signal));
      const others = [provider.listModels(), provider.listModels(new AbortController().signal)];
      await upstream.request();
      const reason = new Error("the caller left");
      leaving.abort(reason);
      expect(await leaver, RULES.signalReason).toBe(reason);
      expect(await failureOf(provider.listModels(AbortSignal.abort(reason))), RULES.signalReason).toBe(reason);
      ready.open();
      expect(await Promise.all(others)).toEqual([["late"], ["late"]]);
      expect(upstream.requests, RULES.requests(1)).toHaveLength(1);
    });

    it("fail no later call when all callers aborted before the upstream broke", async () => {
      const { provider, upstream } = await start();
      const breaks = createGate();
      upstream.answerNext(onceReady(breaks.opened, hangUp()));
      const leaving = new AbortController();
      const leaver = failureOf(provider.listModels(leaving.signal));
      const request = await upstream.request();
      leaving.abort(new Error("the caller left"));
      await leaver;
      await failureOf(provider.listModels(AbortSignal.abort()));
      breaks.open();
      await request.outcome;
      // A caller at this moment may still share the failing reading. Later callers do not.
      await failureOf(provider.listModels());
      expect(await provider.listModels()).toContain("small");
    });

    it("are kept while the upstream cannot tell newer ones, and renewed when it can again", async () => {
      const { provider, upstream, pass } = await start();
      const known = await provider.listModels();
      for (const bad of [hangUp(), json(503, {}), html(200)]) {
        upstream.answerAll(bad);
        await pass(freshMs * 2);
        expect(await provider.listModels()).toEqual(known);
      }
      upstream.answerAll(listOf("new"));
      await pass(freshMs * 2);
      expect(await provider.listModels()).toEqual(["new"]);
    });

    it("are not asked for again at every call while the upstream is down", async () => {
      const { provider, upstream, pass } = await start();
      await provider.listModels();
      upstream.answerAll(json(503, {}));
      await pass(freshMs * 2);
      for (let call = 0; call < 10; call++) await provider.listModels();
      expect(upstream.requests, RULES.requests(2)).toHaveLength(2);
    });

    it("do not make a caller wait for an upstream that is silent", async () => {
      const { provider, upstream, pass } = await open({
        setting: {
          models: "discover",
          timeouts: { ...TIMEOUTS, headersMs: HOUR_MS, idleMs: HOUR_MS },
        },
      });
      const known = await provider.listModels();
      upstream.answerAll(never());
      await pass(freshMs * 2);
      const asked = provider.listModels();
      await upstream.request(2);
      await pass(60_000);
      expect(await asked).toEqual(known);
    });

    it("are a time-out if the upstream is silent and no list is known", async () => {
      const { provider, upstream, pass } = await start();
      upstream.answerAll(never());
      const failure = failureOf(provider.listModels());
      await upstream.request();
      await pass(TIMEOUTS.headersMs * 2);
      isDiscreet(await failure, ports.ModelTimeout, upstream);
    });

    it.each<[string, Answer]>([
      ["an error", json(500, { error: { message: `${CREDENTIAL} is bad` } })],
      ["a refusal", json(401, { error: { message: `${CREDENTIAL} is bad` } })],
      ["a redirect", json(307, {}, { location: "/v1/elsewhere" })],
      ["an empty answer", json(200, "")],
      ["no JSON", html(200)],
      ["null", json(200, null)],
      ["a list without its envelope", json(200, [{ id: "small" }])],
      ["no list", json(200, {})],
      ["a list that is none", json(200, { data: { id: "small" } })],
      ["a list that is cut", stream(['{"data":[{"id":"small"},', CUT])],
      ["half a list", json(200, '{"data":[{"id":"small"}')],
      [
        "more than a list can be",
        json(200, {
          data: [{ id: "small" }],
          more: "a".repeat(16 * 1024 * 1024),
        }),
      ],
      ["no HTTP", raw("nonsense\r\n\r\n")],
    ])("are none where the upstream answers with %s, and are asked for again", async (_name, answer) => {
      const { provider, upstream } = await start();
      upstream.answerNext(answer);
      isDiscreet(await failureOf(provider.listModels()), ports.ModelUnreachable, upstream);
      expect(await provider.listModels()).toContain("small");
    });

    it("are those entries that name one, each once", async () => {
      const { provider, upstream } = await start();
      upstream.answerNext(
        json(200, {
          data: [null, { id: "a" }, 5, "b", {}, { id: 5 }, { id: "" }, { id: "c" }, { id: "a" }],
        }),
      );
      expect(await provider.listModels()).toEqual(["a", "c"]);
    });

    it("may find no models", async () => {
      const { provider, upstream } = await start();
      upstream.answerNext(json(200, { data: [] }));
      expect(await provider.listModels()).toEqual([]);
    });

    it("cannot be changed by one caller for another", async () => {
      const { provider } = await start();
      const listed = await provider.listModels();
      await failureOf((async () => (listed as string[]).push("own"))());
      expect(await provider.listModels()).not.toContain("own");
    });
  });
}

function listOf(...ids: readonly string[]): Answer {
  return json(200, { data: ids.map((id) => ({ id })) });
}

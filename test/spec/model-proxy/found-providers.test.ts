import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import { findProviders, type LocalServer } from "@portico/adapters/models/well-known";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import type { Answer } from "../../harness/upstream-exchange.ts";
import { empty, html, json, never, redirect } from "../../harness/upstream-answers.ts";

const NO_SERVERS: readonly LocalServer[] = [];

describe("providers that a machine already has (open points 2, autoProviders)", () => {
  describe("keys in environment variables", () => {
    const found = async (env: Record<string, string | undefined>) =>
      (await findProviders({ env, localServers: NO_SERVERS })).map(({ protocol, source, options }) => ({
        id: options.id,
        protocol,
        source,
        baseUrl: options.baseUrl,
        key: options.credential?.reveal(),
        models: options.models,
      }));

    it("an empty environment, or an empty variable, gives no providers", async () => {
      expect(await found({})).toEqual([]);
      expect(
        await found({ OPENAI_API_KEY: "", ANTHROPIC_API_KEY: " \n", GEMINI_API_KEY: undefined, UNRELATED_API_KEY: "k" }),
      ).toEqual([]);
    });

    it("become a provider that discovers its models, and says which variable it came from", async () => {
      expect(await found({ ANTHROPIC_API_KEY: "sk-a" })).toEqual([
        {
          id: "anthropic",
          protocol: "messages",
          source: "environment variable ANTHROPIC_API_KEY",
          baseUrl: "https://api.anthropic.com/v1",
          key: "sk-a",
          models: "discover",
        },
      ]);
    });

    it("become one provider each, with an id and an https address of its own", async () => {
      const names = ["ANTHROPIC", "OPENAI", "GEMINI", "OPENROUTER", "MISTRAL", "GROQ", "DEEPSEEK", "XAI", "TOGETHER"];
      const all = await found(Object.fromEntries(names.map((name) => [`${name}_API_KEY`, `key of ${name}`])));
      expect(all.map(({ key }) => key)).toEqual(names.map((name) => `key of ${name}`));
      expect(new Set(all.map(({ id }) => id)).size).toBe(names.length);
      expect(new Set(all.map(({ baseUrl }) => baseUrl)).size).toBe(names.length);
      for (const { baseUrl } of all) expect(baseUrl).toMatch(/^https:\/\/\S+[^/]$/);
      expect(all.filter(({ protocol }) => protocol === "messages").map(({ id }) => id)).toEqual(["anthropic"]);
    });

    it("are taken without the line end that a shell left behind", async () => {
      expect((await found({ OPENAI_API_KEY: " sk-o\r\n" }))[0]?.key).toBe("sk-o");
    });

    it("never show in what is printed", async () => {
      const all = await findProviders({ env: { OPENAI_API_KEY: "sk-hidden" }, localServers: NO_SERVERS });
      expect(`${JSON.stringify(all)}${all[0]?.options.credential}`).not.toContain("sk-hidden");
    });

    it.each([
      [{ OPENAI_BASE_URL: "https://gateway.example/openai/v1" }, "https://gateway.example/openai/v1"],
      [{ OPENAI_BASE_URL: "  " }, "https://api.openai.com/v1"],
      [{ OPENAI_BASE_URL: "" }, "https://api.openai.com/v1"],
    ])("move with the variable of the Chat Completions vendor, taken as it is: %j", async (env, baseUrl) => {
      expect((await found({ OPENAI_API_KEY: "sk-o", ...env }))[0]?.baseUrl).toBe(baseUrl);
    });

    it.each([
      ["https://gateway.example", "https://gateway.example/v1"],
      ["https://gateway.example/", "https://gateway.example/v1"],
      ["https://gateway.example/anthropic", "https://gateway.example/anthropic/v1"],
      ["https://gateway.example/v1", "https://gateway.example/v1"],
      ["https://gateway.example/v2/", "https://gateway.example/v2/"],
    ])("move with the variable of the Messages vendor, whose libraries add the version: %s", async (moved, baseUrl) => {
      expect((await found({ ANTHROPIC_API_KEY: "sk-a", ANTHROPIC_BASE_URL: moved }))[0]?.baseUrl).toBe(baseUrl);
    });

    it("an address variable without a key gives no provider", async () => {
      expect(await found({ ANTHROPIC_BASE_URL: "https://gateway.example" })).toEqual([]);
    });

    it("are sent nowhere while providers are looked for", async () => {
      await using upstream = await startFakeUpstream();
      await found({
        OPENAI_API_KEY: "sk-o",
        OPENAI_BASE_URL: upstream.baseUrl,
        ANTHROPIC_API_KEY: "sk-a",
        ANTHROPIC_BASE_URL: upstream.baseUrl,
      });
      expect([upstream.requests.length, upstream.openConnections]).toEqual([0, 0]);
    });
  });

  describe("local model servers", () => {
    let upstream: FakeUpstream;
    beforeEach(async () => {
      upstream = await startFakeUpstream();
    });
    afterEach(() => upstream.close());

    const look = (...baseUrls: readonly string[]) =>
      findProviders({ env: {}, localServers: baseUrls.map((baseUrl, index) => ({ id: `local${index}`, baseUrl })) });

    it("become a provider without a key when they answer with models", async () => {
      const { baseUrl } = upstream;
      expect(await look(baseUrl)).toEqual([
        {
          protocol: "chat-completions",
          source: `local model server at ${baseUrl}`,
          options: { id: "local0", type: "local0", baseUrl, models: "discover" },
        },
      ]);
      expect(upstream.requests.map(({ method, url }) => `${method} ${url}`)).toEqual(["GET /v1/models"]);
    });

    it("come after the providers with a key", async () => {
      const all = await findProviders({ env: { XAI_API_KEY: "k" }, localServers: [{ id: "local", baseUrl: upstream.baseUrl }] });
      expect(all.map(({ options }) => options.id)).toEqual(["xai", "local"]);
    });

    it("are told no key of a vendor", async () => {
      await findProviders({ env: { OPENAI_API_KEY: "sk-hidden" }, localServers: [{ id: "local", baseUrl: upstream.baseUrl }] });
      expect((await upstream.request()).rawHeaders.join("\n")).not.toContain("sk-hidden");
    });

    it.each<[string, Answer]>([
      ["has no models", json(200, { data: [] })],
      ["is something else", html(200)],
      ["answers with another JSON", json(200, { data: "x" })],
      ["answers with null", json(200, null)],
      ["wants a key", json(401, {})],
      ["has no such path", empty(404)],
      ["says nothing", never()],
    ])("are left out where what listens %s", async (_name, answer) => {
      upstream.answerAll(answer);
      expect(await look(upstream.baseUrl)).toEqual([]);
    });

    it("are left out if they redirect, and the redirect is not followed", async () => {
      await using elsewhere = await startFakeUpstream();
      upstream.answerAll(redirect(`${elsewhere.baseUrl}/models`));
      expect(await look(upstream.baseUrl)).toEqual([]);
      expect(elsewhere.requests).toHaveLength(0);
    });

    it("are left out if no process listens, or if the listener does not speak HTTP; other providers stay", async () => {
      const mute: Server = createServer((socket) =>
        socket
          .on("error", () => {})
          .resume()
          .end("220 ready\r\n"),
      );
      mute.listen(0, "127.0.0.1");
      await once(mute, "listening");
      const address = `http://127.0.0.1:${(mute.address() as AddressInfo).port}/v1`;
      expect((await look(address, upstream.baseUrl)).map(({ options }) => options.id)).toEqual(["local1"]);
      mute.close();
      await once(mute, "close");
      expect((await look(address, upstream.baseUrl, "not an address")).map(({ options }) => options.id)).toEqual(["local1"]);
    });

    it("are left out when the start is given up", async () => {
      const at = { env: {}, localServers: [{ id: "local", baseUrl: upstream.baseUrl }], signal: AbortSignal.abort() };
      expect(await findProviders(at)).toEqual([]);
      expect(upstream.requests).toHaveLength(0);
    });
  });
});

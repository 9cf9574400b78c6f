import Anthropic from "@anthropic-ai/sdk";
import { connectAgent } from "@portico/client";
import { createClient } from "@portico/core/client";
import OpenAI from "openai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import * as crossws from "../../../playground/embed-crossws.ts";
import * as express from "../../../playground/embed-express.ts";
import * as fastify from "../../../playground/embed-fastify.ts";
import * as plainFetch from "../../../playground/embed-fetch.ts";
import * as h3 from "../../../playground/embed-h3.ts";
import * as hono from "../../../playground/embed-hono.ts";
import * as platform from "../../../playground/embed-platform.ts";
import * as someAreas from "../../../playground/embed-some-areas.ts";
import * as twoApps from "../../../playground/embed-two-apps.ts";
import type { EmbeddingStory } from "../../../playground/embedding-story.ts";
import { notebookContract } from "../../../playground/notebook.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";

const onNode = { h3, hono, express, fastify };

describe.each(Object.entries({ ...onNode, crossws, fetch: plainFetch }))("embedded in %s", (_name, { start }) => {
  let story: EmbeddingStory;
  beforeEach(async () => {
    story = await start();
  });
  afterEach(() => story[Symbol.asyncDispose]());

  /** The host as a client library's fetch: the library knows it under an address of the library's own. */
  const throughHost: typeof fetch = (input, init) => {
    const request = new Request(input, init);
    const { pathname, search } = new URL(request.url);
    const { method, headers, signal } = request;
    return story.call(pathname + search, { method, headers, signal, body: init?.body ?? null });
  };
  const hello = [{ role: "user" as const, content: "Hello" }];

  it("the host keeps its own routes", async () => {
    expect(await (await story.call("/")).text()).toBe("a page of the host's own");
  });

  it("a client of either protocol is served below the mount", async () => {
    const apiKey = story.tokens.proxy;
    const chat = new OpenAI({ baseURL: "http://host.test/proxy/v1", apiKey, fetch: throughHost });
    const messages = new Anthropic({ baseURL: "http://host.test/proxy", apiKey, fetch: throughHost });
    const said = await chat.chat.completions.create({ model: "demo", messages: hello });
    expect(said.choices[0]?.message.content).toContain("You said: Hello");
    let streamed = "";
    for await (const event of await messages.messages.create({ model: "demo", max_tokens: 50, messages: hello, stream: true })) {
      if (event.type === "content_block_delta" && event.delta.type === "text_delta") streamed += event.delta.text;
    }
    expect(streamed).toContain("You said: Hello");
  });

  it("each surface answers with its own errors, also for undeclared paths", async () => {
    const asked = (path: string) => story.call(path).then((response) => response.json());
    expect(await asked("/proxy/v1/nothing")).toEqual({
      type: "error",
      error: { type: "not_found_error", message: "Not found" },
    });
    expect(await asked("/notebook/nothing")).toEqual({ error: "not_found", message: "Not found" });
    expect(await asked("/agent/api/nothing")).toEqual({ error: "Not found", code: "not_found" });
  });

  it("a plugin of one's own takes bodies below the mount", async () => {
    const headers = { authorization: `Bearer ${story.tokens.notebook}`, "content-type": "application/json" };
    const body = JSON.stringify({ title: "a/b", text: "One." });
    expect((await story.call("/notebook/notes", { method: "POST", headers, body })).status).toBe(201);
    expect((await story.call("/notebook/notes/a%2Fb", { method: "DELETE", headers })).status).toBe(204);
  });

  it("events come through the host while they happen, until their reader leaves", async () => {
    const client = createClient(notebookContract, {
      baseURL: "http://host.test/notebook",
      headers: { authorization: `Bearer ${story.tokens.notebook}` },
      fetch: (request) => request.text().then((body) => throughHost(request, body === "" ? {} : { body })),
    });
    const reading = new AbortController();
    const events = await client.watch({ signal: reading.signal });
    const seen: string[] = [];
    await client.write({ body: { title: "1", text: "" } });
    for await (const { event, data } of events) {
      seen.push(`${event} ${data.title}`);
      if (seen.length === 3) break;
      // The next one is written when this one has arrived: whatever gathers events would stop here for ever.
      await client.write({ body: { title: String(seen.length + 1), text: "" } });
    }
    reading.abort();
    expect(seen).toEqual(["written 1", "written 2", "written 3"]);
  });
});

describe.each(Object.entries(onNode))("the realtime channel, embedded in %s on Node", (_name, { start }) => {
  it.each([[["polling"]], [["websocket"]], [["polling", "websocket"]]] as const)("works over %j", async (transports) => {
    await using story = await start();
    const token = story.tokens.agent;
    await using client = connectAgent({ baseURL: `${story.url}/agent`, token, transports });
    let text = "";
    const query = client.submit({ agentId: "echo", prompt: "Hello there" });
    for await (const { delta } of query) text += delta ?? "";
    expect([text, (await query.ended).status]).toEqual(["Hello there", "completed"]);
  });

  it("and event streams do not keep the host from stopping", async () => {
    const story = await start();
    const token = story.tokens.agent;
    await using client = connectAgent({ baseURL: `${story.url}/agent`, token, transports: ["websocket"] });
    await client.connected();
    const headers = { authorization: `Bearer ${story.tokens.notebook}` };
    const { body } = await story.call("/notebook/events", { headers });
    await story[Symbol.asyncDispose]();
    await body!.cancel();
    await expect(story.call("/")).rejects.toThrow();
  });
});

it("the realtime channel, embedded behind a fetch function on crossws/server, works over a plain WebSocket", async () => {
  await using story = await crossws.start();
  await using client = connectAgent({ baseURL: `${story.url}/agent`, token: story.tokens.agent, realtime: "websocket" });
  let text = "";
  const query = client.submit({ agentId: "echo", prompt: "Hello there" });
  for await (const { delta } of query) text += delta ?? "";
  expect([text, (await query.ended).status]).toEqual(["Hello there", "completed"]);
});

it("two apps in one process do not see each other's records, tokens and surfaces", async () => {
  await using story = await twoApps.start();
  const as = (name: string) => ({ authorization: `Bearer the-token-of-${name}`, "content-type": "application/json" });
  const notes = async (name: string) => {
    const answer = await story.call(`/${name}/notes`, { headers: as(name) });
    return ((await answer.json()) as { notes: { title: string }[] }).notes.map(({ title }) => title);
  };
  const write = (name: string, title: string) =>
    story.call(`/${name}/notes`, { method: "POST", headers: as(name), body: JSON.stringify({ title, text: "" }) });
  const statuses = [await write("ada", "tea"), await write("bob", "tea"), await write("bob", "coffee")].map(
    ({ status }) => status,
  );
  expect([statuses, await notes("ada"), await notes("bob")]).toEqual([[201, 201, 201], ["tea"], ["coffee", "tea"]]);
  for (const [at, name] of [
    ["ada", "bob"],
    ["bob", "ada"],
  ] as const) {
    expect((await story.call(`/${at}/notes`, { headers: as(name) })).status).toBe(401);
  }
});

describe("a platform, embedded", () => {
  const headers = { "x-agent-service-token": "the-token-of-ada" };

  it("has every surface below its mount, and keeps everything in its folder", async () => {
    const folder = temporaryFolder();
    {
      await using story = await platform.start(folder.path);
      const handshake = await (await story.call("/agent/api/handshake", { headers })).json();
      expect(handshake).toMatchObject({
        identity: { userId: "ada", role: "owner" },
        capabilities: { webhookManagement: true, media: true, attachments: true, realtime: true, safeTokens: true },
      });
      const issued = await story.call("/agent/api/safe-tokens", {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify({ providerId: "demo" }),
      });
      const { token } = (await issued.json()) as { token: string };
      expect((await story.call("/proxy/v1/models", { headers: { "x-api-key": token } })).status).toBe(200);
      expect((await story.call("/workflow/api/workflows")).status).toBe(401);
    }
    await using again = await platform.start(folder.path);
    const { safeTokens } = (await (await again.call("/agent/api/safe-tokens", { headers })).json()) as { safeTokens: unknown[] };
    expect(safeTokens).toHaveLength(1);
    await again[Symbol.asyncDispose]();
    folder.remove();
  });

  it("lacks the areas that are left out: their paths are unknown, and its handshake says so", async () => {
    const folder = temporaryFolder();
    await using app = await someAreas.start(folder.path);
    const call = async (path: string) => {
      const answer = await app.surface("agent").fetch(new Request(`http://desk.test${path}`, { headers }));
      return { status: answer.status, body: (await answer.json()) as any };
    };
    const unknown = { status: 404, body: { error: "Not found", code: "not_found" } };
    for (const path of ["/api/safe-tokens", "/api/media", "/api/agents/x/webhooks"]) expect(await call(path)).toEqual(unknown);
    expect((await call("/api/conversations")).status).toBe(200);
    expect((await call("/api/handshake")).body.capabilities).toEqual({
      ...{ webhookManagement: false, media: false, attachments: false, realtime: true, safeTokens: false, agentDocuments: true },
    });
    await app.close();
    folder.remove();
  });
});

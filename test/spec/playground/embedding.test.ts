import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import * as express from "../../../playground/embed-express.ts";
import * as plainFetch from "../../../playground/embed-fetch.ts";
import * as h3 from "../../../playground/embed-h3.ts";
import * as hono from "../../../playground/embed-hono.ts";
import type { EmbeddingStory } from "../../../playground/embedding-story.ts";

describe.each(Object.entries({ h3, hono, express, fetch: plainFetch }))("embedded in %s", (_name, { start }) => {
  let story: EmbeddingStory;
  beforeEach(async () => {
    story = await start();
  });
  afterEach(() => story[Symbol.asyncDispose]());

  /** The host as a client library's fetch: the library knows it under an address of the library's own. */
  const throughHost: typeof fetch = (input, init) => {
    const request = new Request(input, init);
    const { pathname, search } = new URL(request.url);
    return story.call(pathname + search, { method: request.method, headers: request.headers, body: init?.body ?? null });
  };
  const hello = [{ role: "user" as const, content: "Hello" }];

  it("the host keeps its own routes", async () => {
    expect(await (await story.call("/")).text()).toBe("a page of the host's own");
  });

  it("a client of either protocol is served below the mount", async () => {
    const { safeToken } = story.desk;
    const chat = new OpenAI({ baseURL: "http://host.test/models/v1", apiKey: safeToken, fetch: throughHost });
    const messages = new Anthropic({ baseURL: "http://host.test/models", apiKey: safeToken, fetch: throughHost });
    const said = await chat.chat.completions.create({ model: "demo", messages: hello });
    expect(said.choices[0]?.message.content).toContain("You said: Hello");
    let streamed = "";
    for await (const event of await messages.messages.create({ model: "demo", max_tokens: 50, messages: hello, stream: true })) {
      if (event.type === "content_block_delta" && event.delta.type === "text_delta") streamed += event.delta.text;
    }
    expect(streamed).toContain("You said: Hello");
  });

  it("each surface answers in its own words, also for paths that nobody declared", async () => {
    const asked = (path: string) => story.call(path).then((response) => response.json());
    expect(await asked("/models/v1/nothing")).toEqual({
      type: "error",
      error: { type: "not_found_error", message: "Not found" },
    });
    expect(await asked("/notebook/nothing")).toEqual({ error: "not_found", message: "Not found" });
  });

  it("a plugin of one's own takes bodies below the mount", async () => {
    const headers = { authorization: `Bearer ${story.desk.notebookToken}`, "content-type": "application/json" };
    const body = JSON.stringify({ title: "a/b", text: "One." });
    expect((await story.call("/notebook/notes", { method: "POST", headers, body })).status).toBe(201);
    expect((await story.call("/notebook/notes/a%2Fb", { method: "DELETE", headers })).status).toBe(204);
  });
});

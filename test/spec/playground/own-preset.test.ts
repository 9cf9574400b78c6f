import { flattenPreset, loadConfig } from "@portico/core";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { start, team, teamSchema } from "../../../playground/own-preset.ts";

const env = { NOTEBOOK_TOKEN: "the-token", PORTICO_AUTO_PROVIDERS: "false", PORTICO_LOG_LEVEL: "silent" };

describe("a preset of one's own", () => {
  it("listens once per surface, and serves what it extends beside what it adds", async () => {
    await using service = await start(env);
    expect(Object.keys(service.urls)).toEqual(["proxy", "notebook"]);
    const client = new OpenAI({ baseURL: `${service.urls["proxy"]}/v1`, apiKey: await service.issueToken() });
    const answer = await client.chat.completions.create({ model: "demo", messages: [{ role: "user", content: "Hello" }] });
    expect(answer.choices[0]?.message.content).toContain("You said: Hello");
    const notes = await fetch(`${service.urls["notebook"]}/notes`, { headers: { authorization: "Bearer the-token" } });
    expect(await notes.json()).toEqual({ notes: [] });
  });

  it("takes a large upload whose model comes last, without a data directory", async () => {
    await using service = await start(env);
    const content = "x".repeat(5 * 1024 * 1024);
    const answer = await fetch(`${service.urls["proxy"]}/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": await service.issueToken() },
      body: JSON.stringify({ messages: [{ role: "user", content }], max_tokens: 10, model: "demo" }),
    });
    expect(answer.status).toBe(200);
  });

  it("replaces the adapters of its parent's single ports: nothing is kept on disk", () => {
    const { adapters } = flattenPreset(team({ settings: loadConfig(teamSchema, { env }).value, providers: [] }));
    const names = adapters.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["records/memory", "secrets/memory", "clock/system"]));
    expect(names.filter((name) => name.includes("sqlite") || name.includes("files"))).toEqual([]);
  });

  it("reads the platform's keys and its own in one report", async () => {
    const refused = await start({ PORTICO_PROXY_PORT: "x", NOTEBOOK_PAGE_SIZE: "2" }).catch((error: Error) => error.message);
    expect(refused).toContain("proxy.listen.port: expected a whole number");
    expect(refused).toContain("notebook.token: expected a string");
  });

  it("is closed with its listeners", async () => {
    const service = await start(env);
    const url = service.urls["notebook"]!;
    await service[Symbol.asyncDispose]();
    await expect(fetch(`${url}/readyz`)).rejects.toThrow();
  });
});

import { createClient } from "@portico/core/client";
import { demo } from "@portico/adapters/models/demo";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { expect, it } from "vitest";
import { start, summariesContract } from "../../../playground/own-background-work.ts";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { json } from "../../harness/upstream-answers.ts";

const connect = (app: Awaited<ReturnType<typeof start>>) =>
  createClient(summariesContract, { baseURL: "http://summaries.test", fetch: app.fetch });

it("a plugin accepts work at once, and does work of one id once", async () => {
  await using app = await start(demo({ id: "demo" }));
  const client = connect(app);
  const submitted = [];
  for (const text of ["first text", "second text"]) submitted.push(await client.submit({ body: { id: "a", text } }));
  expect(submitted.map(({ duplicate }) => duplicate)).toEqual([false, true]);
  const read = () => client.read({ params: { id: "a" } });
  await expect.poll(async () => (await read()).state).toBe("done");
  expect((await read()).summary).toContain("first text");
  await expect(client.read({ params: { id: "b" } })).rejects.toMatchObject({ status: 404, code: "summary_unknown" });
});

it("a plugin's work that the model refuses has an end that callers can read", async () => {
  await using upstream = await startFakeUpstream();
  upstream.answerAll(json(400, { type: "error", error: { type: "invalid_request_error", message: "no" } }));
  await using app = await start(messagesHttp({ id: "main", type: "vendor", baseUrl: upstream.baseUrl, models: ["m"] }));
  const client = connect(app);
  await client.submit({ body: { id: "a", text: "a text" } });
  await expect.poll(async () => (await client.read({ params: { id: "a" } })).state).toBe("failed");
  expect(upstream.requests).toHaveLength(1);
});

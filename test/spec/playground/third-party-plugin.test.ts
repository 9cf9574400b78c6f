import { createManualClock } from "@portico/adapters/clock/manual";
import { createApp, Secret } from "@portico/core";
import { type Client, createClient } from "@portico/core/client";
import { toOpenAPI } from "@portico/core/openapi";
import { testing } from "@portico/presets/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { notebook, notebookContract } from "../../../playground/notebook.ts";
import { start } from "../../../playground/third-party-plugin.ts";

const TOKEN = "the-notebook-token";

describe("a third party's plugin", () => {
  let app: Awaited<ReturnType<typeof start>>;
  let client: Client<typeof notebookContract>;
  beforeEach(async () => {
    app = await start({ NOTEBOOK_TOKEN: TOKEN, NOTEBOOK_PAGE_SIZE: "2" });
    client = connected(`Bearer ${TOKEN}`);
  });
  afterEach(() => app.close());

  const connected = (authorization: string) =>
    createClient(notebookContract, { baseURL: "http://notebook.test", headers: { authorization }, fetch: app.fetch });
  const write = (title: string) => client.write({ body: { title, text: `About ${title}` } });

  it("answers on its own routes, page by page", async () => {
    for (const title of ["b", "a", "c"]) await write(title);
    const first = await client.list();
    expect(first.notes.map((note) => note.title)).toEqual(["a", "b"]);
    const second = await client.list({ query: { after: first.next! } });
    expect(second).toMatchObject({ notes: [{ title: "c", text: "About c" }] });
    expect(second.next).toBeUndefined();
    await client.remove({ params: { title: "b" } });
    expect((await client.list()).notes.map((note) => note.title)).toEqual(["a", "c"]);
  });

  it("throws its own declared errors, in its own envelope", async () => {
    await write("a");
    await expect(write("a")).rejects.toMatchObject({
      status: 409,
      body: { error: "note_exists", message: "A note of this title is there already" },
    });
    await expect(client.remove({ params: { title: "z" } })).rejects.toMatchObject({ status: 404, code: "note_unknown" });
    await expect(client.list({ query: { after: "no-cursor" } })).rejects.toMatchObject({ status: 400, code: "cursor_invalid" });
    await expect(client.write({ body: { title: "", text: "" } })).rejects.toMatchObject({ status: 400, code: "invalid_request" });
  });

  it.each(["", "Bearer wrong", TOKEN])("refuses callers without its token (%s)", async (presented) => {
    await expect(connected(presented).list()).rejects.toMatchObject({ status: 401, code: "unauthorized" });
  });

  it("sends its events as they happen, and stops when the reader leaves", async () => {
    const events = await client.watch();
    await write("a");
    await write("b");
    const seen: string[] = [];
    for await (const { event, data } of events) {
      seen.push(`${event} ${data.title}`);
      if (seen.length === 2) break;
    }
    expect(seen).toEqual(["written a", "written b"]);
  });

  it("says what is wrong with its configuration, without the token", async () => {
    const refused = await start({ NOTEBOOK_PAGE_SIZE: "many" }).catch((error: Error) => error.message);
    expect(refused).toBe(
      [
        'token: expected a string, {"env": "NAME"} or {"file": "PATH"}, found nothing; NOTEBOOK_TOKEN sets it',
        'pageSize: expected a whole number from 1 to 1000, found "many" (environment NOTEBOOK_PAGE_SIZE)',
      ].join("\n"),
    );
  });

  it("has a document, derived from its contract", () => {
    const { paths } = toOpenAPI({ title: "Notebook", version: "1.0.0" }, app.contracts);
    expect(Object.keys(paths)).toEqual(["/notes", "/notes/{title}", "/events"]);
  });

  it("can be tested with the preset `testing`, with a clock that is stopped", async () => {
    const clock = createManualClock();
    await using tested = await createApp({
      name: "test",
      extends: testing({ clock }),
      plugins: [notebook({ token: new Secret("t") })],
    });
    const headers = { authorization: "Bearer t", "content-type": "application/json" };
    const body = JSON.stringify({ title: "first", text: "Ports are small." });
    const response = await tested.fetch(new Request("http://test/notes", { method: "POST", headers, body }));
    expect(await response.json()).toMatchObject({ title: "first", writtenAt: "2030-01-01T00:00:00.000Z" });
  });
});

import { describe, expect, it } from "vitest";
import { start } from "../../../playground/own-middleware.ts";
import { hostKinds, openHost } from "../../harness/hosts.ts";

const headers = { authorization: "Bearer a-token-for-this-story", "content-type": "application/json" };
const body = JSON.stringify({ title: "tea", text: "No milk." });

describe.each(hostKinds)("middleware and routes of a host's own, on a %s host", (kind) => {
  it("run before the surface's routes, and in addition to them", async () => {
    let isReadOnly = false;
    await using app = await start(() => isReadOnly);
    await using host = await openHost(kind, app);
    const write = () => host.call("/notes", { method: "POST", headers, body });
    expect((await write()).status).toBe(201);
    isReadOnly = true;
    expect((await write()).status).toBe(503);
    const list = await host.call("/notes", { headers });
    expect([list.status, list.headers.get("x-run-by")]).toEqual([200, "the desk"]);
    expect(await list.json()).toMatchObject({ notes: [{ title: "tea" }] });
    expect(await (await host.call("/about")).json()).toEqual({ notebook: "shared-notebook" });
  });
});

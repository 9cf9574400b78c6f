// The host adds its own middleware and its own route to a surface.
import { type App, createApp, Secret } from "@portico/core";
import { HTTPError } from "h3";
import { testing } from "@portico/presets/testing";
import { notebook } from "./notebook.ts";

/** A notebook that the host can make read-only. Every answer names its operator, and an added route describes it. */
export async function start(isReadOnly: () => boolean): Promise<App> {
  const app = await createApp({
    name: "shared-notebook",
    extends: testing({}),
    plugins: [notebook({ token: new Secret("a-token-for-this-story") })],
  });
  const { h3 } = app.surface("notebook");
  h3.use((event) => {
    event.res.headers.set("x-run-by", "the desk");
    if (isReadOnly() && event.req.method !== "GET") throw new HTTPError({ status: 503, message: "Read only for now" });
  });
  h3.get("/about", () => ({ notebook: app.name }));
  return app;
}

if (import.meta.main) {
  await using app = await start(() => true);
  const headers = { authorization: "Bearer a-token-for-this-story", "content-type": "application/json" };
  const call = (method: string, path: string, body?: string) =>
    app.surface("notebook").fetch(new Request(`http://desk.local${path}`, { method, headers, ...(body && { body }) }));
  const notes = await call("GET", "/notes");
  console.log(`${notes.status}, run by ${notes.headers.get("x-run-by")}: ${await notes.text()}`);
  const written = await call("POST", "/notes", '{"title":"tea","text":"No milk."}');
  console.log(`${written.status}: ${((await written.json()) as { message: string }).message}`);
  console.log(await (await call("GET", "/about")).text());
}

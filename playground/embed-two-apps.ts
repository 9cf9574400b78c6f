// Two apps in one process, each with its own store and its own token. They do not see each other.
import { systemClock } from "@portico/adapters/clock/system";
import { memoryRecords } from "@portico/adapters/records/memory";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { type App, createApp, Secret } from "@portico/core";
import { Hono } from "hono";
import { notebook } from "./notebook.ts";

/** The notebook of one person. Each call opens its own adapters and plugins. */
const openNotebook = (name: string): Promise<App> =>
  createApp({
    name,
    adapters: [systemClock(), memoryRecords(), memorySecrets()],
    plugins: [notebook({ token: new Secret(`the-token-of-${name}`) })],
  });

export async function start() {
  const [ada, bob] = await Promise.all([openNotebook("ada"), openNotebook("bob")]);
  const host = new Hono().mount("/ada", ada.fetch).mount("/bob", bob.fetch);
  return {
    call: async (path: string, init?: RequestInit) => host.fetch(new Request(`http://host.local${path}`, init)),
    async [Symbol.asyncDispose]() {
      await Promise.all([ada.close(), bob.close()]);
    },
  };
}

if (import.meta.main) {
  await using story = await start();
  const as = (name: string) => ({ authorization: `Bearer the-token-of-${name}`, "content-type": "application/json" });
  const titles = async (path: string, name: string) => {
    const { notes } = (await (await story.call(path, { headers: as(name) })).json()) as { notes: { title: string }[] };
    return notes.map(({ title }) => title).join();
  };
  const body = JSON.stringify({ title: "tea", text: "No milk." });
  await story.call("/ada/notes", { method: "POST", headers: as("ada"), body });
  console.log(`ada's notes: ${await titles("/ada/notes", "ada")}`);
  console.log(`bob's notes: ${await titles("/bob/notes", "bob")}`);
  console.log(`bob in ada's notebook: ${(await story.call("/ada/notes", { headers: as("bob") })).status}`);
}

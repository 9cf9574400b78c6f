import type { Desk } from "./desk.ts";

/** A host application with the desk mounted in it. Disposing closes the host, then the desk's app. */
export interface EmbeddingStory extends AsyncDisposable {
  /** Call the host by a path. */
  call(path: string, init?: RequestInit): Promise<Response>;
  readonly desk: Desk;
}

/** Call every part of the host once, and print what it says. */
export async function tell(story: EmbeddingStory): Promise<void> {
  const { call, desk } = story;
  console.log(`host: ${await (await call("/")).text()}`);
  const answer = await call("/models/v1/messages", {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": desk.safeToken },
    body: JSON.stringify({ model: "demo", max_tokens: 100, messages: [{ role: "user", content: "Hello" }] }),
  });
  const { content } = (await answer.json()) as { content: { text: string }[] };
  console.log(`model: ${content[0]?.text}`);
  const list = await call("/notebook/notes", { headers: { authorization: `Bearer ${desk.notebookToken}` } });
  console.log(`notebook: ${await list.text()}`);
}

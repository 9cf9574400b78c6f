// A model that speaks slowly, so that there is a middle of a conversation. It needs no key and no network.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as wait } from "node:timers/promises";

const WORD_MS = 150;
const STORY = "Once upon a time there were three processes that shared one instance and they told this story word by word".split(
  " ",
);

/** An upstream with the protocol chat-completions. It tells a story, and then says what it was asked before. */
export async function startStoryteller() {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const { messages } = JSON.parse(body) as { messages: { role: string; content: unknown }[] };
    const asked = messages.filter(({ role }) => role === "user").length;
    const words = asked === 1 ? STORY : [`This is question ${asked} of our conversation.`];
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (choice: object) => {
      const chunk = {
        id: "story",
        object: "chat.completion.chunk",
        created: 1,
        model: "slow",
        choices: [{ index: 0, ...choice }],
      };
      response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    };
    for (const word of words) {
      send({ delta: { content: `${word} ` }, finish_reason: null });
      await wait(WORD_MS);
    }
    send({ delta: {}, finish_reason: "stop" });
    response.end("data: [DONE]\n\n");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    close(): void {
      server.close();
      server.closeAllConnections();
    },
  };
}

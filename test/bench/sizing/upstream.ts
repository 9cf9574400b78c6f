import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A provider for the benchmark. */
export interface Upstream extends Disposable {
  readonly baseUrl: string;
}

interface Asked {
  readonly model: string;
  readonly stream?: boolean;
  readonly tools?: readonly { readonly name: string }[];
  readonly messages: readonly { readonly content: unknown }[];
}

/** 300 characters. */
const ANSWER = "Nothing happened since you asked. ".repeat(9).slice(0, 300);

/**
 * A provider in Messages format. The model `slow` begins an answer and never ends it. Every other model answers at once: it calls the first tool
 * that it may use, and after that says a text.
 */
export async function openUpstream(): Promise<Upstream> {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const text of request.setEncoding("utf8")) body += text;
    const asked = JSON.parse(body) as Asked;
    const write = begin(response, asked.model);
    if (asked.model === "slow") return write("content_block_start", { index: 0, content_block: { type: "text", text: "" } });
    if (!asked.stream) return answerWhole(response, asked.model);
    const isTold = JSON.stringify(asked.messages.at(-1)?.content).includes("tool_result");
    const [tool] = isTold ? [] : (asked.tools ?? []);
    if (tool) {
      write("content_block_start", { index: 0, content_block: { type: "tool_use", id: "toolu_1", name: tool.name, input: {} } });
      const delta = { type: "input_json_delta", partial_json: JSON.stringify({ text: ANSWER }) };
      write("content_block_delta", { index: 0, delta });
    } else {
      write("content_block_start", { index: 0, content_block: { type: "text", text: "" } });
      write("content_block_delta", { index: 0, delta: { type: "text_delta", text: ANSWER } });
    }
    write("content_block_stop", { index: 0 });
    write("message_delta", { delta: { stop_reason: tool ? "tool_use" : "end_turn" }, usage: { output_tokens: 75 } });
    write("message_stop", {});
    response.end();
  });
  await new Promise<void>((open) => server.listen(0, "127.0.0.1", open));
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    [Symbol.dispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function begin(response: ServerResponse, model: string): (type: string, data: object) => void {
  let hasBegun = false;
  return (type, data) => {
    if (!hasBegun) response.writeHead(200, { "content-type": "text/event-stream" });
    const write = (name: string, content: object) =>
      response.write(`event: ${name}\ndata: ${JSON.stringify({ type: name, ...content })}\n\n`);
    if (!hasBegun) write("message_start", { message: { ...message(model), content: [], stop_reason: null } });
    hasBegun = true;
    write(type, data);
  };
}

function answerWhole(response: ServerResponse, model: string): void {
  const body = { ...message(model), content: [{ type: "text", text: ANSWER }], stop_reason: "end_turn" };
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function message(model: string): object {
  return {
    ...{ id: "msg_1", type: "message", role: "assistant", model, stop_sequence: null },
    usage: { input_tokens: 75, output_tokens: 75 },
  };
}

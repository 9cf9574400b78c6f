import { defineWebSocketHandler, H3Event } from "h3";
import type { WebSocketPath } from "../ports/websocket-paths.ts";
import { NO_SNIFFING } from "./json-headers.ts";

/**
 * Answers a request for a WebSocket path. The host finds the hooks on the answer and opens the WebSocket. Any other request
 * gets 426.
 */
export async function answerWebSocket({ hooks }: WebSocketPath, request: Request): Promise<Response> {
  const answer = await defineWebSocketHandler(hooks, upgradeRequired)(new H3Event(request as never));
  return answer as Response;
}

function upgradeRequired(): Response {
  const headers = { ...NO_SNIFFING, "content-type": "application/json; charset=utf-8", upgrade: "websocket" };
  return new Response(JSON.stringify({ error: "upgrade_required", message: "This path is for WebSockets" }), {
    status: 426,
    headers,
  });
}

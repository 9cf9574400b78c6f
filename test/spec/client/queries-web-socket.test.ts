import { connectAgent } from "@portico/client";
import { serve } from "crossws/server";
import { expect, it } from "vitest";
import { queriesOver } from "./query-suite.ts";

queriesOver("websocket");

it("a silent connection, without even a ping, is replaced", async () => {
  const hellos: unknown[] = [];
  const server = serve({
    fetch: () => new Response("a page"),
    websocket: {
      message(peer, message) {
        hellos.push(message.json());
        peer.send(
          JSON.stringify({
            type: "welcome",
            id: peer.id,
            place: `place ${hellos.length}`,
            pingIntervalMs: 10,
            pingTimeoutMs: 10,
          }),
        );
      },
    },
    ...{ hostname: "127.0.0.1", port: 0, silent: true },
  });
  await server.ready();
  const client = connectAgent({
    baseURL: server.url!,
    token: "a-token",
    realtime: "websocket",
    clientInstanceId: "this-program-0001",
  });
  await expect.poll(() => hellos.length).toBeGreaterThan(1);
  client.close();
  await server.close(true);
  const hello = { token: "a-token", clientInstanceId: "this-program-0001" };
  expect(hellos.slice(0, 2)).toEqual([
    { type: "hello", hello },
    { type: "hello", hello, last: "place 1" },
  ]);
});

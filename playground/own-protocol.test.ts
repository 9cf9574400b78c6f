import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { Secret } from "@portico/core";
import { readLines } from "@portico/core/model-protocols";
import { OWN_ANSWER, type OwnServicePlay, ownModelsConformance } from "@portico/test/conformance/own-models";
import { lineModels } from "./own-protocol.ts";

const KEY = "a-key-of-lines";
const SAY = { say: OWN_ANSWER };

/** What the service does in each play. It ends the connection afterwards, unless it waits. */
const PLAYS: Readonly<Record<OwnServicePlay, (tell: (line: object) => Promise<void>) => Promise<void>>> = {
  answer: async (tell) => {
    for (const character of OWN_ANSWER) await tell({ say: character });
    await tell({ done: { read: 3, said: 12 } });
  },
  refuse: (tell) => tell({ refuse: `Too many calls with ${KEY}` }),
  break: (tell) => tell(SAY),
  hold: () => new Promise(() => {}),
  endless: async (tell) => {
    for (;;) await tell(SAY);
  },
  down: async () => {},
};

ownModelsConformance("playground/own-protocol.ts", async () => {
  let play: OwnServicePlay = "answer";
  const sockets = new Set<Socket>();
  const serve = async (socket: Socket) => {
    for await (const _question of readLines(socket)) {
      await PLAYS[play](async (line) => {
        if (!socket.write(`${JSON.stringify(line)}\n`)) await once(socket, "drain");
      });
      socket.end();
    }
  };
  const service = createServer((socket) => {
    sockets.add(socket.once("close", () => sockets.delete(socket)));
    // Callers that leave break their connections.
    serve(socket).catch(() => {});
  });
  service.listen(0, "127.0.0.1");
  await once(service, "listening");
  const { port } = service.address() as AddressInfo;
  const close = () => {
    service.close();
    for (const socket of sockets) socket.destroy();
  };
  return {
    adapter: lineModels({ id: "lines", host: "127.0.0.1", port, key: new Secret(KEY), models: ["small", "large"] }),
    hidden: [KEY, `127.0.0.1:${port}`],
    play: (what) => {
      play = what;
      if (what === "down") close();
    },
    open: () => sockets.size,
    close,
  };
});

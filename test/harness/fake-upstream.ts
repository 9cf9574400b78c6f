import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { echoModel } from "./echo-model.ts";
import { createGate } from "./gate.ts";
import type { Answer } from "./upstream-exchange.ts";
import { RequestCut, recordRequest, type UpstreamRequest } from "./upstream-request.ts";

/** A model provider for tests: an HTTP server that speaks both protocols, sends the answers that a test sets, and records its requests. */
export interface FakeUpstream extends AsyncDisposable {
  /** `http://127.0.0.1:PORT/v1`: the base URL in a provider's configuration. */
  readonly baseUrl: string;
  /** Every request so far, the oldest first. */
  readonly requests: readonly UpstreamRequest[];
  readonly openConnections: number;
  readonly openExchanges: number;
  /** Scripts for the next requests, used once each and in this order; after them the standing answer counts again. */
  answerNext(...answers: readonly Answer[]): void;
  /** The answer to every request that no `answerNext` covers. At first: the echo model. */
  answerAll(answer: Answer): void;
  /** Resolves with a request as soon as its head is there. `number` counts from 1. */
  request(number?: number): Promise<UpstreamRequest>;
  /** Resolves as soon as no exchange is open. */
  quiet(): Promise<void>;
  /** Resolves as soon as no connection is open. */
  deserted(): Promise<void>;
  /** Forget all requests and scripts; connections stay. */
  reset(): void;
  /** Cut every connection and stop. Throws an AggregateError when a script failed by its own fault. */
  close(): Promise<void>;
}

export interface FakeUpstreamOptions {
  /** The models that `GET /v1/models` lists; default `echo-large` and `echo-small`. */
  readonly models?: readonly string[];
  /** False keeps sizes and digests of bodies and lets go of the bytes: for very large ones. Default true. */
  readonly keepBodies?: boolean;
}

/** Start a fake upstream on a port of the system's choice at 127.0.0.1. */
export async function startFakeUpstream(options: FakeUpstreamOptions = {}): Promise<FakeUpstream> {
  const requests: UpstreamRequest[] = [];
  const queue: Answer[] = [];
  const failures: unknown[] = [];
  const connections = new Set<Socket>();
  const watchers = new Set<() => void>();
  const echo = echoModel({ models: options.models ?? ["echo-large", "echo-small"] });
  let standing = echo;
  let openExchanges = 0;

  const changed = () => {
    for (const watch of [...watchers]) watch();
  };
  const reached = (condition: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const watch = () => {
        if (!condition()) return;
        watchers.delete(watch);
        resolve();
      };
      watchers.add(watch);
      watch();
    });

  const serve = async (incoming: IncomingMessage, response: ServerResponse) => {
    const over = createGate();
    let isOver = false;
    const answer = queue.shift() ?? standing;
    let hold: Promise<unknown> | undefined;
    let held = false;
    const { request, read, end } = recordRequest(incoming, response, requests.length + 1, options.keepBodies ?? true);
    openExchanges += 1;
    response.on("error", ignore);
    response.once("close", () => {
      end();
      openExchanges -= 1;
      isOver = true;
      over.open();
      changed();
    });
    const holdBody = (until: Promise<unknown>) => {
      if (held) throw new Error("holdBody() was called after the script first waited: the body is being read already");
      hold = until;
    };
    requests.push(request);
    try {
      const done = answer({
        request,
        response,
        socket: incoming.socket,
        over: over.opened,
        get isOver() {
          return isOver;
        },
        holdBody,
      });
      held = true;
      if (hold) void hold.then(read, read);
      else read();
      changed();
      await done;
    } catch (error) {
      if (!isOver && !(error instanceof RequestCut)) failures.push(error);
      incoming.socket.destroy();
    }
  };

  const server = createServer(
    { keepAliveTimeout: 60_000, maxHeaderSize: 1024 * 1024 },
    (request, response) => void serve(request, response),
  );
  // A request may be as slow as its test wants it.
  server.requestTimeout = 0;
  server.headersTimeout = 0;
  server.on("connection", (socket) => {
    connections.add(socket);
    socket.on("error", ignore);
    socket.once("close", () => {
      connections.delete(socket);
      changed();
    });
    changed();
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;

  const close = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of connections) socket.destroy();
    await closed;
    if (failures.length > 0) throw new AggregateError(failures.splice(0), "A script of the fake upstream failed");
  };
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    get openConnections() {
      return connections.size;
    },
    get openExchanges() {
      return openExchanges;
    },
    answerNext: (...answers) => void queue.push(...answers),
    answerAll(answer) {
      standing = answer;
    },
    async request(number = 1) {
      await reached(() => requests.length >= number);
      return requests[number - 1] as UpstreamRequest;
    },
    quiet: () => reached(() => openExchanges === 0),
    deserted: () => reached(() => connections.size === 0),
    reset() {
      requests.length = 0;
      queue.length = 0;
      standing = echo;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

function ignore(): void {}

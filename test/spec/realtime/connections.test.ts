import { Buffer } from "node:buffer";
import { once } from "node:events";
import { ports } from "@portico/core";
import { afterEach, describe, expect, it } from "vitest";
import { serveNamed } from "../../harness/named-service.ts";
import { openDeafSocket, openRawSession, openRawSocket, pingFrame, textFrame } from "../../harness/raw-session.ts";
import { clientKinds, connected, openSocketHost, type SocketHost, told } from "../../harness/socket-host.ts";

let host: SocketHost;
afterEach(() => host[Symbol.asyncDispose]());

async function open(options?: Parameters<typeof openSocketHost>[0], more?: Parameters<typeof serveNamed>[1]) {
  host = await openSocketHost(options);
  return serveNamed(host.realtime, more);
}

/** Begin a WebSocket session by hand, up to the connection under the name. */
async function openNamed(name: string) {
  const socket = await openRawSocket(host.origin);
  await socket.next();
  socket.send(`40${JSON.stringify({ name })}`);
  await socket.next();
  return socket;
}

describe.each(Object.entries(clientKinds))("the real client, %s", (_kind, transports) => {
  it("stays while it is idle, however often it is asked whether it lives", async () => {
    const service = await open({ pingIntervalMs: 10 });
    const client = await host.connect({ name: "ada" }, { transports: [...transports] });
    for (let asked = 0; asked < 5; asked++) await told(client.io, "ping");
    client.emit("word", {});
    await service.saw("ada says word {}");
    expect(service.seen).toEqual(["joined ada", "ada says word {}"]);
  });

  it("learns code and message of a refusal, and nothing else of it", async () => {
    const cause = new Error("hunter2");
    await open({}, { admit: () => Promise.reject(new ports.ConnectionRefused("unauthorized", "Wrong token", { cause })) });
    const refusal = await host.connect({ token: "wrong" }, { transports: [...transports] }).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ message: "Wrong token", code: "unauthorized" });
    expect(host.attachment.open.size + host.telemetry.lines.length).toBeLessThan(2);
  });

  it("comes back with another id after its network failed", async () => {
    const service = await open();
    const client = await host.connect({ name: "ada" }, { transports: [...transports], reconnection: true, reconnectionDelay: 1 });
    const first = client.id;
    const back = told(client, "connect");
    client.io.engine.close();
    await back;
    await service.saw("joined ada", 2);
    expect(client.id).not.toBe(first);
    expect(service.seen).toContain("gone ada");
  });

  it("comes back with the place of its last event, or where it began, and is told whether it misses something", async () => {
    const asked: (string | undefined)[] = [];
    const service = await open(
      {},
      {
        resume(_who, last) {
          asked.push(last);
          return { resumePoint: last ?? "the beginning", isWhole: asked.length < 4 };
        },
      },
    );
    const client = await host.connect({ name: "ada" }, { transports: [...transports], reconnection: true, reconnectionDelay: 1 });
    const comeBack = async () => {
      const back = told(client, "connect");
      client.io.engine.close();
      await back;
      await service.saw("joined ada", asked.length);
      return client.recovered;
    };
    expect(await comeBack()).toBe(true);
    const heard = told(client, "news");
    service.connections.send(service.idOf("ada"), "news", undefined, "after one");
    await heard;
    expect([await comeBack(), await comeBack()]).toEqual([true, false]);
    expect(asked).toEqual([undefined, "the beginning", "after one", "after one"]);
  });

  it("receives an event without a payload, and sends one", async () => {
    const service = await open();
    const client = await host.connect({ name: "ada" }, { transports: [...transports] });
    const bare = new Promise<unknown[]>((resolve) => client.on("bare", (...args: unknown[]) => resolve(args)));
    service.connections.send(service.idOf("ada"), "bare", undefined);
    expect(await bare).toEqual([]);
    client.emit("bare");
    await service.saw("ada says bare undefined");
  });
});

describe("a client", () => {
  it("changes from polling to a WebSocket, and loses nothing on the way", async () => {
    const service = await open();
    const client = await host.connect({ name: "ada" }, { transports: ["polling", "websocket"] });
    const heard: number[] = [];
    const end = new Promise((resolve) => client.on("end", resolve));
    client.on("count", (n: number) => heard.push(n));
    let sent = 0;
    do {
      service.connections.send(service.idOf("ada"), "count", sent);
      await new Promise(setImmediate);
    } while (++sent < 200 || client.io.engine.transport.name === "polling");
    service.connections.send(service.idOf("ada"), "end", {});
    await end;
    expect(heard).toEqual(Array.from({ length: sent }, (_each, n) => n));
  });

  it("that is dropped is not heard any more, not even what it sent in the same breath", async () => {
    host = await openSocketHost();
    const service = serveNamed(host.realtime, {
      receive: (socket, event) => {
        heard.push(event);
        service.connections.drop(socket.id);
      },
    });
    const heard: string[] = [];
    const session = await openRawSession(host.origin, { name: "ada" });
    await session.post(['42["first"]', '42["second"]'].join("\x1e"));
    await service.saw("gone ada");
    await host.closeApp();
    expect(heard).toEqual(["first"]);
  });

  it("that requests an acknowledgement gets none, and its event arrives", async () => {
    const service = await open();
    const client = await host.connect({ name: "ada" });
    client.emit("word", { n: 1 }, () => {
      throw new Error("Nobody answers");
    });
    client.emit("word", () => {});
    await service.saw("ada says word undefined");
    expect(service.seen).toEqual(["joined ada", 'ada says word {"n":1}', "ada says word undefined"]);
  });

  it.each([
    ["several payloads", ["word", 1, 2]],
    ["a number as its name", [7, {}]],
  ])("that sends an event with %s is not heard, and stays", async (_what, packet) => {
    const service = await open();
    const socket = await openNamed("ada");
    socket.send(`42${JSON.stringify(packet)}`);
    socket.send('42["error",{}]');
    await service.saw("ada says error {}");
    expect(service.seen).toEqual(["joined ada", "ada says error {}"]);
    expect(host.telemetry.lines).toMatchObject([{ level: "warn", fields: { path: "/live/", socket: service.idOf("ada") } }]);
    socket.close();
  });

  it.each([
    ["no packet of Engine.IO", "x"],
    ["no packet of Socket.IO", "4x"],
    ["an event that is no JSON", '42["word",'],
    ["an event that is no list", '42{"0":"word"}'],
    ["an event with a name that is reserved", '42["connect"]'],
    ["an attachment that never was announced", "451-[]"],
    ["another hello", '40{"name":"eve"}'],
    ["an answer that nobody waits for", "44{}"],
  ])("that sends %s loses its connection, and harms nobody else", async (_what, message) => {
    const service = await open();
    const socket = await openNamed("ada");
    socket.send(message);
    await socket.closed;
    await service.saw("gone ada");
    await host.connect({ name: "bob" });
    await service.saw("joined bob");
    expect(service.seen).toEqual(["joined ada", "gone ada", "joined bob"]);
  });

  it("that presents a second hello before the first is decided loses its connection, undecided", async () => {
    const asked: AbortSignal[] = [];
    const service = await open({}, { admit: (_hello, signal) => new Promise(() => asked.push(signal)) });
    const socket = await openRawSocket(host.origin);
    await socket.next();
    socket.send("40{}");
    socket.send("40{}");
    await socket.closed;
    expect(asked.map(({ aborted }) => aborted)).toEqual([true]);
    expect(service.seen).toEqual([]);
  });

  it("that asks for a namespace gets an error: there are no namespaces", async () => {
    await open();
    const socket = await openRawSocket(host.origin);
    await socket.next();
    socket.send("40/admin,{}");
    expect(await socket.next()).toBe('44/admin,{"message":"Invalid namespace"}');
    socket.close();
  });

  it("that presents no object has presented an empty one", async () => {
    const hellos: unknown[] = [];
    const service = await open({}, { admit: async (hello) => `${hellos.push(hello)}` });
    const socket = await openRawSocket(host.origin);
    await socket.next();
    socket.send("40");
    await service.saw("joined 1");
    expect(hellos).toEqual([{}]);
    socket.close();
  });

  it("that leaves its namespace loses its connection, too", async () => {
    const service = await open();
    const socket = await openNamed("ada");
    socket.send("41");
    await socket.closed;
    expect(service.seen).toEqual(["joined ada", "gone ada"]);
  });

  it("that leaves while it is decided on aborts the decision, and never joins", async () => {
    const asked = Promise.withResolvers<AbortSignal>();
    const decided = Promise.withResolvers<string>();
    const service = await open(
      {},
      {
        admit(_hello, signal) {
          asked.resolve(signal);
          return decided.promise;
        },
      },
    );
    const socket = await openRawSocket(host.origin);
    await socket.next();
    socket.send("40{}");
    const signal = await asked.promise;
    socket.close();
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    decided.resolve("ada");
    await host.closeApp();
    expect(service.seen).toEqual([]);
  });
});

describe("a client that does not speak", () => {
  it("in time for its hello is sent away", async () => {
    const service = await open({ helloTimeoutMs: 30 });
    const socket = await openRawSocket(host.origin);
    await socket.closed;
    const { poll } = await openRawSession(host.origin);
    const answer = await poll();
    // On a busy machine the session has ended before the request.
    if (answer.status !== 400) expect((await answer.text()).split("\u001e").at(-1)).toBe("1");
    expect(service.seen).toEqual([]);
  });

  it("while the decision takes too long is sent away, and the decision aborted", async () => {
    const aborted = Promise.withResolvers<void>();
    const service = await open(
      { helloTimeoutMs: 30 },
      {
        admit: (_hello, signal) =>
          new Promise((_resolve, reject) =>
            signal.addEventListener("abort", () => {
              aborted.resolve();
              reject(signal.reason);
            }),
          ),
      },
    );
    const socket = await openRawSocket(host.origin);
    await socket.next();
    socket.send("40{}");
    await Promise.all([aborted.promise, socket.closed]);
    expect(service.seen).toEqual([]);
  });

  it("when it is asked whether it lives is gone", async () => {
    const service = await open({ pingIntervalMs: 10, pingTimeoutMs: 10 });
    const socket = await openNamed("ada");
    await service.saw("gone ada");
    await socket.closed;
  });
});

it.each([
  ["answers to connecting to a namespace that is not served", textFrame("40/other,")],
  ["answers to pings of the WebSocket protocol", pingFrame("x".repeat(125))],
])("a client that asks for %s and reads nothing is cut when more than the backlog waits", async (_what, frame) => {
  const service = await open();
  const deaf = await openDeafSocket(host.origin, { name: "ada" });
  await service.saw("joined ada");
  const batch = Buffer.concat(Array.from({ length: 1_000 }, () => frame));
  // Far more than the system buffers between the two.
  for (let sent = 0; sent < 1_000 && !service.seen.includes("gone ada"); sent++) {
    if (!deaf.write(batch)) await Promise.race([once(deaf, "drain"), service.saw("gone ada")]);
  }
  expect(service.seen).toEqual(["joined ada", "gone ada"]);
  const fields = { path: "/live/", socket: service.idOf("ada") };
  expect(host.telemetry.lines).toMatchObject([{ message: "A realtime client that reads too slowly was cut", fields }]);
  deaf.destroy();
});

it("two clients with one hello are two connections", async () => {
  const service = await open();
  const [one, other] = [await host.connect({ name: "ada" }), await host.connect({ name: "ada" })];
  await service.saw("joined ada", 2);
  expect(service.connections.has(one.id!) && service.connections.has(other.id!)).toBe(true);
  expect(one.id).not.toBe(other.id);
});

it("a dropped client is told, does not come back by itself, and may come back when it is asked to", async () => {
  const service = await open();
  const client = await host.connect({ name: "ada" }, { reconnection: true, reconnectionDelay: 1 });
  const cut = told(client, "disconnect");
  service.connections.drop(client.id!);
  expect(await cut).toBe("io server disconnect");
  expect(client.active).toBe(false);
  await connected(client.connect());
  await service.saw("joined ada", 2);
});

it.each([
  ["maxMessageBytes", { maxMessageBytes: 0 }],
  ["pingIntervalMs", { pingIntervalMs: 1.5 }],
  ["backlog.events", { backlog: { events: Number.NaN, bytes: 1 } }],
])("a limit that is none stops the start with a sentence: %s", async (name, options) => {
  await open();
  await expect(openSocketHost(options)).rejects.toThrow(`Realtime limit ${name} is a whole number of at least 1`);
});

import { inspect } from "node:util";
import { ioredisServer, type IoredisServerOptions } from "@portico/cluster/redis/ioredis";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createLive, Secret } from "@portico/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasOpenssl, makeCertificate, type OwnCertificate } from "../harness/own-certificate.ts";
import { temporaryFolder } from "../harness/portico-process.ts";
import { refusingPort } from "../harness/ports.ts";
import { hasRedisServer, type OwnRedis, ownRedis } from "../harness/redis.ts";
import { openAdapter } from "./open-adapter.ts";

/** Opens the adapter, asks for the answer to PING, and closes. */
async function answerOf(options: IoredisServerOptions) {
  const telemetry = createMemoryTelemetry();
  const { port, close } = await openAdapter(ioredisServer(options), [memoryTelemetry({ telemetry })]);
  const answer: unknown = await port.commands.ping().catch((error: unknown) => error);
  const database = await port.commands.client("INFO").catch(() => "");
  await close();
  return { answer, database: /\bdb=(\d+)/.exec(String(database))?.[1], lines: telemetry.lines, prefix: port.prefix };
}

describe("redis/ioredis", () => {
  it.each([
    "localhost:6379",
    "http://127.0.0.1:6379",
    "redis://",
    "redis://127.0.0.1/name",
    "redis://user:correct-horse@host:port",
    "",
  ])("throws TypeError for the url %j, and does not quote it", async (url) => {
    const error: unknown = await answerOf({ url }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TypeError);
    expect(inspect(error)).not.toContain("correct-horse");
  });

  it.each([{ prefix: "" }, { prefix: "a b" }, { prefix: "a*" }, { prefix: "x".repeat(65) }, { commandTimeoutMs: 0 }])(
    "throws TypeError for %j",
    async (options) => {
      await using refusing = await refusingPort();
      await expect(answerOf({ url: `redis://127.0.0.1:${refusing.port}`, ...options })).rejects.toThrow(TypeError);
    },
  );

  it("opens while the server refuses connections, says so once, and fails commands at once", async () => {
    await using refusing = await refusingPort();
    const { answer, lines } = await answerOf({ url: `redis://127.0.0.1:${refusing.port}`, prefix: "mine" });
    expect(answer).toBeInstanceOf(Error);
    expect(lines.map(({ level, message, fields }) => [level, message, fields])).toEqual([
      ["warn", "Redis is unavailable", { reason: "ECONNREFUSED" }],
    ]);
  });
});

describe.skipIf(!hasRedisServer())("redis/ioredis on a server with a password", () => {
  let server: OwnRedis;
  beforeAll(async () => {
    server = await ownRedis({ settings: ["--requirepass", "correct horse"], connection: { password: "correct horse" } });
    await server.ask("ACL", "SETUSER", "ada", "on", ">battery/staple", "~*", "&*", "+@all");
  });
  afterAll(() => server[Symbol.asyncDispose]());
  const at = (credentials: string, database = "") => `redis://${credentials}@127.0.0.1:${server.port}${database}`;

  it("takes user, password and database from the url, which shows nowhere", async () => {
    expect(await answerOf({ url: at(":correct%20horse") })).toMatchObject({ answer: "PONG", database: "0", prefix: "portico" });
    const url = new Secret(at("ada:battery%2Fstaple", "/7"));
    expect(await answerOf({ url })).toMatchObject({ answer: "PONG", database: "7", lines: [] });
    expect(JSON.stringify(ioredisServer({ url }))).not.toContain("staple");
  });

  it("uses another password for later connections, while the app is open; another server is refused", async () => {
    await server.ask("ACL", "SETUSER", "bob", "on", ">one", "~*", "&*", "+@all");
    const urlOf = (password: string) => ({ url: new Secret(at(`bob:${password}`)) });
    const rotation = createLive(urlOf("one"));
    const { port, close } = await openAdapter(ioredisServer({ ...urlOf("one"), rotation }), [memoryTelemetry({})]);
    const more = port.connect();
    await server.ask("ACL", "SETUSER", "bob", "resetpass", ">two");
    await rotation.replace(urlOf("two"));
    // Open connections stay.
    expect(await port.commands.ping()).toBe("PONG");
    await server.ask("CLIENT", "KILL", "USER", "bob");
    const answers = async () => Promise.all([port.commands, more, port.connect()].map((each) => each.ping().catch(() => "")));
    await expect.poll(answers).toEqual(["PONG", "PONG", expect.any(String)]);
    await expect(rotation.replace({ url: new Secret("redis://bob:two@127.0.0.1:1") })).rejects.toThrow(
      new TypeError("Another Redis server needs a restart"),
    );
    await close();
  });

  it.each([
    ["a wrong password", ":wrong@", "WRONGPASS"],
    ["no password", "", "NOAUTH"],
  ])("says which word the server answered to %s", async (_, credentials, reason) => {
    const { answer, lines } = await answerOf({ url: `redis://${credentials}127.0.0.1:${server.port}` });
    expect(answer).toBeInstanceOf(Error);
    expect(lines.map(({ message, fields }) => [message, fields])).toEqual([["Redis is unavailable", { reason }]]);
  });
});

describe.skipIf(!hasRedisServer() || !hasOpenssl())("redis/ioredis over TLS", () => {
  let server: OwnRedis;
  let certificate: OwnCertificate;
  let foreign: OwnCertificate;
  const folders = [temporaryFolder(), temporaryFolder()];
  beforeAll(async () => {
    certificate = makeCertificate(folders[0]!.path, ["IP:127.0.0.1"]);
    foreign = makeCertificate(folders[1]!.path, ["IP:127.0.0.1"]);
    const { certificateFile, keyFile } = certificate;
    server = await ownRedis({
      settings: [
        ...["--tls-port", "PORT", "--tls-cert-file", certificateFile, "--tls-key-file", keyFile],
        ...["--tls-ca-cert-file", certificateFile, "--tls-auth-clients", "yes"],
      ],
      connection: { tls: { ca: certificate.certificate, cert: certificate.certificate, key: certificate.key } },
    });
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    folders.forEach((folder) => folder.remove());
  });
  const tls = () => ({ ca: certificate.certificate, cert: certificate.certificate, key: new Secret(certificate.key) });

  it("connects with the authority and the client's certificate, with either scheme", async () => {
    for (const scheme of ["redis", "rediss"]) {
      const { answer, lines } = await answerOf({ url: `${scheme}://127.0.0.1:${server.port}`, tls: tls() });
      expect([answer, lines]).toEqual(["PONG", []]);
    }
  });

  it("refuses a server whose certificate the authority did not sign", async () => {
    const options = { url: `rediss://127.0.0.1:${server.port}`, commandTimeoutMs: 1000 };
    for (const each of [{ tls: { ...tls(), ca: foreign.certificate } }, {}]) {
      const { answer, lines } = await answerOf({ ...options, ...each });
      expect(answer).toBeInstanceOf(Error);
      expect(lines[0]?.fields?.["reason"]).toMatch(/SELF_SIGNED|UNABLE_TO/);
    }
  });

  it("is refused by the server without a client certificate", async () => {
    const { answer, lines } = await answerOf({ url: `rediss://127.0.0.1:${server.port}`, tls: { ca: certificate.certificate } });
    expect(answer).toBeInstanceOf(Error);
    expect(lines[0]?.message).toBe("Redis is unavailable");
  });

  it("refuses a server with another name than the url's", async () => {
    const { lines } = await answerOf({ url: `rediss://localhost:${server.port}`, tls: tls() });
    expect(lines[0]?.fields).toEqual({ reason: "ERR_TLS_CERT_ALTNAME_INVALID" });
  });
});

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { postgresRecords, type PostgresRecordsOptions } from "@portico/cluster/records/postgres";
import { inspectPostgres } from "@portico/cluster/stores/inspect-servers";
import { createLive, ports, Secret } from "@portico/core";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasOpenssl, makeCertificate } from "../harness/own-certificate.ts";
import { hasPostgresServer, type PostgresServer, postgresServer } from "../harness/postgres-server.ts";
import { openAdapter } from "./open-adapter.ts";

const canRun = hasPostgresServer() && hasOpenssl();
if (!canRun) console.warn("Tests of PostgreSQL with TLS are skipped: they need the programs of a PostgreSQL server, and openssl");

const folders: string[] = [];
const certificateFor = (names: readonly string[]) => {
  folders.push(mkdtempSync(join(tmpdir(), "portico-certificate-")));
  return makeCertificate(folders.at(-1)!, names);
};
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true })));

describe.skipIf(!canRun)("records/postgres with TLS", () => {
  let server: PostgresServer;
  let theirs: ReturnType<typeof certificateFor>;
  let ours: ReturnType<typeof certificateFor>;
  beforeAll(async () => {
    theirs = certificateFor(["DNS:localhost"]);
    ours = certificateFor(["DNS:client"]);
    server = await postgresServer({
      settings: { ssl: "on", ssl_cert_file: "server.pem", ssl_key_file: "server.key", ssl_ca_file: "clients.pem" },
      files: { "server.pem": theirs.certificate, "server.key": theirs.key, "clients.pem": ours.certificate },
      // `portico-test` is the name in every certificate that the tests make.
      access: ["hostssl all postgres 127.0.0.1/32 trust", "hostssl all portico-test 127.0.0.1/32 cert"],
    });
    const client = new Client({ connectionString: atLocalhost(), ssl: { ca: theirs.certificate } });
    await client.connect();
    await client.query('CREATE ROLE "portico-test" LOGIN SUPERUSER');
    await client.end();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());

  const atLocalhost = (user = "postgres") => `postgres://${user}@localhost:${server.port}/postgres`;
  const open = (options: PostgresRecordsOptions) => openAdapter(postgresRecords(options));
  const refusal = async (options: PostgresRecordsOptions): Promise<Error> => {
    const error: unknown = await open(options).then(
      ({ close }) => close(),
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(Error);
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(ours.key.split("\n")[1]);
    return error as Error;
  };

  it("writes and reads over an encrypted connection to a server that the authority knows", async () => {
    const { port, close } = await open({ url: atLocalhost(), tls: { ca: theirs.certificate }, schema: "plain" });
    const notes = port.collection<{ text: string }>({ name: "notes" });
    await notes.put("one", { text: "t" });
    expect((await notes.get("one"))?.value).toEqual({ text: "t" });
    await close();
  });

  it("shows its own certificate to a server that asks for one", async () => {
    const url = atLocalhost("portico-test");
    const tls = { ca: theirs.certificate, cert: ours.certificate, key: new Secret(ours.key) };
    const { close } = await open({ url, tls, schema: "certified" });
    await close();
    expect((await refusal({ url, tls: { ca: theirs.certificate } })).message).toContain("28000");
  });

  it("refuses a server that the authority does not know, one of another name, and a connection without encryption", async () => {
    const unknown = await refusal({ url: atLocalhost(), tls: {} });
    expect(unknown).toBeInstanceOf(ports.RecordsUnavailable);
    expect(unknown.message).toMatch(/SELF_SIGNED/);
    expect((await refusal({ url: server.url, tls: { ca: theirs.certificate } })).message).toContain(
      "ERR_TLS_CERT_ALTNAME_INVALID",
    );
    expect((await refusal({ url: server.url })).message).toContain("28000");
  });

  it("uses another user and certificate for later connections, while the app is open; another database is refused", async () => {
    const certified = { ca: theirs.certificate, cert: ours.certificate, key: new Secret(ours.key) };
    const first = { url: atLocalhost(), tls: { ca: theirs.certificate } };
    const rotation = createLive<Pick<PostgresRecordsOptions, "url" | "tls">>(first);
    const { port, close } = await open({ ...first, schema: "rotated", rotation });
    const notes = port.collection<{ text: string }>({ name: "notes" });
    await notes.put("one", { text: "t" });
    await rotation.replace({ url: atLocalhost("portico-test"), tls: certified });
    // Open connections stay.
    expect((await notes.get("one"))?.value).toEqual({ text: "t" });
    const client = new Client({ connectionString: atLocalhost(), ssl: { ca: theirs.certificate } });
    await client.connect();
    const usersOf = async () => {
      const sql = "SELECT usename FROM pg_stat_activity WHERE application_name = 'portico'";
      return new Set((await client.query(sql)).rows.map(({ usename }) => usename as string));
    };
    expect(await usersOf()).toEqual(new Set(["postgres"]));
    await client.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'portico'");
    expect((await notes.get("one"))?.value).toEqual({ text: "t" });
    expect(await usersOf()).toEqual(new Set(["portico-test"]));
    await client.end();
    for (const url of [atLocalhost().replace(/postgres$/, "template1"), atLocalhost().replace("localhost", "127.0.0.1")])
      await expect(rotation.replace({ url, tls: certified })).rejects.toThrow("needs a restart");
    await expect(rotation.replace({ url: atLocalhost(), tls: { ca: "nonsense" } })).rejects.toThrow(TypeError);
    await close();
  });

  it("is inspected over an encrypted connection", async () => {
    const facts = await inspectPostgres({ url: atLocalhost(), tls: { ca: theirs.certificate } });
    // The harness starts it with `fsync = off`.
    expect(facts).toMatchObject({ version: expect.stringMatching(/^\d+/), isDurable: false });
    expect(facts.maxConnections).toBeGreaterThan(facts.connections);
  });

  it("takes no invalid texts, no half of a pair, and no other word about TLS in the url", async () => {
    const { certificate, key } = ours;
    for (const tls of [{ ca: "nonsense" }, { ca: "" }, { cert: certificate }, { key }, { cert: certificate, key: theirs.key }]) {
      const error = await refusal({ url: atLocalhost(), tls });
      expect(error).toBeInstanceOf(TypeError);
      expect(error.message).toContain("TLS to PostgreSQL needs");
    }
    for (const word of ["sslmode=disable", "ssl=0", "sslnegotiation=direct"]) {
      const error = await refusal({ url: `${atLocalhost()}?${word}`, tls: { ca: theirs.certificate } });
      expect(error.message).toContain("not from both");
    }
  });
});

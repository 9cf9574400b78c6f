import { readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { once } from "node:events";
import { request } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { io } from "socket.io-client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../../harness/ports.ts";
import { hasOpenssl, makeCertificate } from "../../harness/own-certificate.ts";
import { type PorticoProcess, runCommand, runPortico, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { clientKinds, connected } from "../../harness/socket-host.ts";

/** Appends to a file what the process loads of listhen and the h3 that listhen brings along. */
const watchLoading = `
  import { appendFileSync } from "node:fs";
  import { registerHooks } from "node:module";
  registerHooks({ load(url, context, next) {
    if (/node_modules.(listhen|get-port-please|node-forge)/.test(url)) appendFileSync("loaded.txt", url + "\\n");
    return next(url, context);
  } });`;

/** Another program takes the first port on which a server with TLS is about to listen. */
const takePort = `
  import https from "node:https";
  import net from "node:net";
  const { listen } = net.Server.prototype;
  let other;
  net.Server.prototype.listen = function (port, host, ...more) {
    if (other || !(this instanceof https.Server)) return listen.call(this, port, host, ...more);
    other = net.createServer();
    listen.call(other, port, host, () => listen.call(this, port, host, ...more)).unref();
    return this;
  };`;

/** A call that trusts one certificate and no authority. Rejects as the TLS handshake does. */
function call(url: string, ca: string | undefined, path: string): Promise<{ status: number | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(new URL(path, url), { ca, agent: false }, async (response) => {
      const text = (await response.toArray()).join("");
      resolve({ status: response.statusCode, text });
    });
    sent.on("error", reject).end();
  });
}

describe("portico start --https", () => {
  const folder = temporaryFolder();
  let service: PorticoProcess;
  let certificate: string;
  beforeAll(async () => {
    service = await startPortico({ cwd: folder.path, args: ["--https"], before: watchLoading });
    certificate = service.read("https-certificate.pem");
  });
  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    folder.remove();
  });

  it("says every surface's address as https, in one line, and in endpoints.json", () => {
    expect(service.stdout()).toBe(`${JSON.stringify(service.ready)}\n`);
    const { event: _, ...endpoints } = service.ready;
    expect(JSON.parse(service.read("endpoints.json"))).toEqual(endpoints);
    expect(service.url("proxy")).toMatch(/^https:\/\/127\.0\.0\.1:\d+\/v1$/);
    for (const surface of ["workflow", "agent"]) expect(service.url(surface)).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  });

  it("answers a client that trusts the instance's certificate, by every loopback name", async () => {
    for (const surface of ["workflow", "agent"]) {
      expect(await call(service.url(surface), certificate, "/healthz")).toEqual({ status: 200, text: '{"status":"alive"}' });
    }
    const byName = service.url("agent").replace("127.0.0.1", "localhost");
    expect((await call(byName, certificate, "/healthz")).status).toBe(200);
    expect((await call(service.url("proxy"), certificate, "/v1/models")).status).toBe(401);
  });

  it("is not trusted without that, and does not speak plain HTTP", async () => {
    await expect(call(service.url("agent"), undefined, "/healthz")).rejects.toMatchObject({
      code: "DEPTH_ZERO_SELF_SIGNED_CERT",
    });
    await expect(fetch(service.url("agent").replace("https", "http"))).rejects.toThrow();
  });

  it.each(Object.entries(clientKinds))("carries Socket.IO: %s", async (_kind, transports) => {
    const { agentServiceToken: token } = JSON.parse(service.read("credentials.json")) as { agentServiceToken: string };
    const auth = { token, clientInstanceId: "an-instance-over-tls" };
    const client = io(service.url("agent"), { ca: certificate, auth, transports: [...transports], reconnection: false });
    await connected(client);
    client.disconnect();
    const stranger = io(service.url("agent"), { ca: certificate, auth: { ...auth, token: "wrong" }, reconnection: false });
    await expect(connected(stranger)).rejects.toMatchObject({ code: "unauthorized" });
    stranger.disconnect();
  });

  it("is called by the instance's own commands, which trust that certificate", async () => {
    const { code, stdout, stderr } = await service.run("workflow", "list", "--json");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(JSON.parse(stdout)).toEqual({ workflows: [], broken: [], editable: false });
  });

  it("keeps certificate and key for their owner alone, and starts with them again", async () => {
    for (const name of ["https-certificate.pem", "https-key.pem"])
      expect((statSync(join(service.dataDir, name)).mode & 0o777).toString(8), name).toBe("600");
    expect(await service.stop()).toBe(0);
    service = await startPortico({ cwd: folder.path, args: ["--https"] });
    expect(service.read("https-certificate.pem")).toBe(certificate);
    expect((await call(service.url("agent"), certificate, "/healthz")).status).toBe(200);
  });

  it("makes another certificate when a listener has another name", async () => {
    await service.stop();
    const config = { agent: { publicUrl: "https://desk.example" } };
    service = await startPortico({ cwd: folder.path, args: ["--https"], config });
    expect(service.read("https-certificate.pem")).not.toBe(certificate);
    expect((await call(service.url("agent"), service.read("https-certificate.pem"), "/healthz")).status).toBe(200);
  });

  it("alone loads listhen: a plain start does not", async () => {
    expect(readFileSync(join(folder.path, "loaded.txt"), "utf8")).toContain("listhen");
    const other = temporaryFolder();
    await using plain = await startPortico({ cwd: other.path, before: watchLoading });
    expect((await fetch(`${plain.url("agent")}/healthz`)).status).toBe(200);
    await plain.stop();
    expect(() => readFileSync(join(other.path, "loaded.txt"))).toThrow("ENOENT");
    other.remove();
  });
});

describe("a fixed port of an HTTPS listener", () => {
  it("is the port that it listens on", async () => {
    const port = await freePort();
    await using service = await startPortico({ args: ["--https"], env: { PORTICO_AGENT_PORT: String(port) } });
    expect(service.url("agent")).toBe(`https://127.0.0.1:${port}`);
  });

  it("is an error with a sentence and exit code 69 where it is taken, never another port", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as AddressInfo;
    const result = await runCommand(["start", "--json", "--https"], { env: { PORTICO_AGENT_PORT: String(port) } });
    taken.close();
    expect(result).toMatchObject({ code: 69, stdout: "" });
    expect(result.stderr.trimEnd().split("\n").at(-1)).toBe(
      `agent.listen: port ${port} on 127.0.0.1 is already in use: stop the program that uses it, or set another port (with 0 the system chooses one)`,
    );
  });

  it("is an error, too, where another program takes it at the last moment", async () => {
    const port = await freePort();
    const env = { PORTICO_AGENT_PORT: String(port) };
    const result = await runPortico(["start", "agent", "--json", "--https"], { env, before: takePort });
    expect(result).toMatchObject({ code: 69, stdout: "" });
    expect(result.stderr).toContain(`agent.listen: port ${port} on 127.0.0.1 is already in use`);
  });

  it("is refused where browsers refuse it", async () => {
    const result = await runCommand(["start", "--json", "--https"], { env: { PORTICO_AGENT_PORT: "6000" } });
    expect(result).toMatchObject({ code: 78, stdout: "" });
    expect(result.stderr).toContain("Port 6000 cannot be used with HTTPS, because browsers refuse it");
  });
});

describe.skipIf(!hasOpenssl())("a given certificate", () => {
  const folder = temporaryFolder();
  const other = temporaryFolder();
  afterAll(() => [folder, other].forEach((each) => each.remove()));
  const make = () => makeCertificate(folder.path, ["IP:127.0.0.1"]);

  it("is served with --https-cert and --https-key, and with the keys of the configuration", async () => {
    const { certificate, certificateFile, keyFile } = make();
    await using flagged = await startPortico({ args: ["--https-cert", certificateFile, "--https-key", keyFile] });
    await using configured = await startPortico({ config: { https: { cert: certificateFile, key: keyFile } } });
    for (const service of [flagged, configured]) {
      expect((await call(service.url("agent"), certificate, "/healthz")).status).toBe(200);
      expect(() => service.read("https-certificate.pem")).toThrow("ENOENT");
    }
  });

  it("that cannot be used stops the start with a sentence and exit code 78; doctor says the same", async () => {
    const { certificateFile } = make();
    const { keyFile: foreign } = makeCertificate(other.path, ["IP:127.0.0.1"]);
    const absent = join(folder.path, "absent.pem");
    for (const [env, message] of [
      [{ PORTICO_HTTPS_CERT: certificateFile }, "https.cert requires https.key"],
      [{ PORTICO_HTTPS_KEY: foreign }, "https.key requires https.cert"],
      [{ PORTICO_HTTPS_CERT: certificateFile, PORTICO_HTTPS_KEY: absent }, `https.key: ${absent} cannot be read (ENOENT)`],
      [
        { PORTICO_HTTPS_CERT: certificateFile, PORTICO_HTTPS_KEY: foreign },
        "https.cert and https.key cannot be used: the key does not belong to the certificate",
      ],
    ] as const) {
      const [start, doctor] = await Promise.all([runCommand(["start", "--json"], { env }), runCommand(["doctor"], { env })]);
      expect(start).toMatchObject({ code: 78, stdout: "" });
      expect(start.stderr).toContain(message);
      expect(doctor.code).toBe(1);
      expect(doctor.stdout).toContain(message);
    }
  });

  it("that is good shows in doctor with its end", async () => {
    const { certificateFile, keyFile } = make();
    const env = { PORTICO_HTTPS_CERT: certificateFile, PORTICO_HTTPS_KEY: keyFile };
    const { stdout } = await runCommand(["doctor"], { env });
    expect(stdout).toMatch(/the certificate in \S+ is valid until .* GMT/);
  });
});

describe("a port of the system's choice of an HTTPS listener", () => {
  it("is another one where another program takes it at the last moment", async () => {
    await using service = await startPortico({ args: ["--https"], before: takePort });
    const certificate = service.read("https-certificate.pem");
    for (const surface of ["workflow", "agent"]) {
      expect(await call(service.url(surface), certificate, "/healthz")).toMatchObject({ status: 200 });
    }
  });
});

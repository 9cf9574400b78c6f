import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { request } from "node:https";
import { afterEach, describe, expect, it } from "vitest";
import { startNameServer } from "../../harness/name-server.ts";
import { followsNames, hasNginx, type Nginx, startNginx } from "../../harness/nginx.ts";
import { freePort } from "../../harness/ports.ts";
import { shippedNginx } from "../../harness/shipped-nginx.ts";

const canFollow = hasNginx() && followsNames();
if (!canFollow) console.warn("The upstreams' `resolve` is not tried: it needs nginx 1.27.3 (PORTICO_TEST_NGINX names a program)");

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});
/** A container at an address of this machine, which says its name. */
async function startContainer(name: string, address: string, port: number): Promise<Server> {
  const server = createServer((_request, answer) => answer.end(name)).listen(port, address);
  await once(server, "listening");
  servers.push(server);
  return server;
}
const ask = ({ port, certificate }: Nginx) =>
  new Promise<string>((resolve, reject) => {
    const options = {
      host: "127.0.0.1",
      port,
      servername: "agents.example",
      ca: certificate,
      headers: { host: "agents.example" },
    };
    request({ ...options, agent: false }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (part: string) => (text += part));
      answer.on("end", () => resolve(answer.statusCode === 200 ? text : `${answer.statusCode}`));
    })
      .on("error", reject)
      .end();
  });
/** nginx asks again after a second. */
const PATIENT = { timeout: 20_000, interval: 200 };

describe.skipIf(!canFollow)("nginx of the containers", () => {
  it.each(["portico", "portico-1"])("starts before the container %s, and follows it to another address", async (name) => {
    const port = await freePort();
    const urls = (name === "portico" ? ["1"] : ["1", "2"]).map(() => `http://127.0.0.1:${port}`);
    await using names = await startNameServer([]);
    await using nginx = await startNginx(await shippedNginx({ agents: urls, workflows: urls, resolver: names.address }));
    expect(await ask(nginx)).toBe("502");
    const first = await startContainer("first", "127.0.0.2", port);
    names.names.set(name, "127.0.0.2");
    await expect.poll(() => ask(nginx), PATIENT).toBe("first");
    await startContainer("second", "127.0.0.3", port);
    names.names.set(name, "127.0.0.3");
    first.close().closeAllConnections();
    await expect.poll(() => ask(nginx), PATIENT).toBe("second");
  });

  it("uses the other process while one of a cluster has no address", async () => {
    const port = await freePort();
    const urls = ["1", "2"].map(() => `http://127.0.0.1:${port}`);
    await using names = await startNameServer([
      ["portico-1", "127.0.0.2"],
      ["portico-2", "127.0.0.3"],
    ]);
    await startContainer("second", "127.0.0.3", port);
    const first = await startContainer("first", "127.0.0.2", port);
    await using nginx = await startNginx(await shippedNginx({ agents: urls, workflows: urls, resolver: names.address }));
    // A client stays at one process.
    await expect.poll(() => ask(nginx), PATIENT).toMatch(/^(first|second)$/);
    const kept = await ask(nginx);
    for (let time = 0; time < 5; time++) expect(await ask(nginx)).toBe(kept);
    first.close().closeAllConnections();
    names.names.delete("portico-1");
    await expect.poll(() => ask(nginx), PATIENT).toBe("second");
  });
});

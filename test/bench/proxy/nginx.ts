import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { endsWithThis } from "./child.ts";

/** nginx as a reverse proxy: one process, like every other contestant. */
export interface Nginx {
  readonly origin: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Undefined where nginx is not installed. `dir` takes its configuration and whatever it writes. */
export async function startNginx(dir: string, upstream: string): Promise<Nginx | undefined> {
  if (spawnSync("nginx", ["-v"], { stdio: "ignore" }).error) return undefined;
  const port = await freePort();
  const file = join(dir, "nginx.conf");
  await writeFile(file, configuration(dir, port, new URL(upstream).host));
  const child = spawn("nginx", ["-c", file, "-p", dir, "-e", join(dir, "nginx.log")], { stdio: "ignore" });
  endsWithThis(child);
  const ended = once(child, "exit");
  await reachable(port);
  return {
    origin: `http://127.0.0.1:${port}`,
    pid: child.pid!,
    async stop() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

/** Unbuffered in both directions and with connections to the upstream kept alive: what a model stream needs. */
function configuration(dir: string, port: number, upstream: string): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${join(dir, name)};`);
  return `
    daemon off;
    master_process off;
    pid ${join(dir, "nginx.pid")};
    events { worker_connections 4096; }
    http {
      access_log off;
      ${temporary.join("\n")}
      keepalive_requests 100000000;
      client_max_body_size 0;
      upstream model { server ${upstream}; keepalive 512; keepalive_requests 100000000; }
      server {
        listen 127.0.0.1:${port} backlog=1024;
        location / {
          proxy_pass http://model;
          proxy_http_version 1.1;
          proxy_set_header Connection "";
          proxy_buffering off;
          proxy_request_buffering off;
        }
      }
    }`;
}

/** nginx cannot choose a port by itself. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

async function reachable(port: number, attempts = 100): Promise<void> {
  const isOpen = await new Promise<boolean>((resolve) => {
    const socket = connect({ host: "127.0.0.1", port }, () => resolve(true));
    socket.on("error", () => resolve(false)).on("connect", () => socket.destroy());
  });
  if (isOpen) return;
  if (attempts === 0) throw new Error("nginx did not start: see nginx.log in the benchmark's folder");
  await new Promise((resolve) => setTimeout(resolve, 50));
  return reachable(port, attempts - 1);
}

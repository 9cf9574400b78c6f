import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { freePort } from "../../harness/ports.ts";
import { endsWithThis } from "./child.ts";

/** nginx with one worker, because every other contestant is one process, too. */
export interface Nginx {
  readonly origin: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** The contents of nginx's blocks `http` and `server`. */
export interface NginxBlocks {
  readonly http: string;
  readonly server: string;
}

/** Undefined if nginx is not installed. `dir` receives its configuration and all of its files. */
export async function startNginx(dir: string, blocks: NginxBlocks): Promise<Nginx | undefined> {
  if (spawnSync("nginx", ["-v"], { stdio: "ignore" }).error) return undefined;
  const port = await freePort();
  const file = join(dir, "nginx.conf");
  await writeFile(file, configuration(dir, port, blocks));
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

/** A reverse proxy for model streams: unbuffered in both directions, with keep-alive connections to the upstream. */
export function modelProxy(upstream: string): NginxBlocks {
  return {
    http: `upstream model { server ${new URL(upstream).host}; keepalive 512; keepalive_requests 100000000; }`,
    server: `location / {
          proxy_pass http://model;
          proxy_http_version 1.1;
          proxy_set_header Connection "";
          proxy_buffering off;
          proxy_request_buffering off;
        }`,
  };
}

/** Files below a folder, with signed links that expire. */
export function signedFiles(folder: string, secret: string): NginxBlocks {
  return {
    http: "sendfile on; tcp_nopush on;",
    server: `location /media/ {
          secure_link $arg_signature,$arg_expires;
          secure_link_md5 "$secure_link_expires$uri ${secret}";
          if ($secure_link = "") { return 403; }
          if ($secure_link = "0") { return 410; }
          root ${folder};
        }`,
  };
}

/** Files that the service at `upstream` has checked, from its folder: the locations of docs/guides/behind-nginx.md. */
export function acceleratedFiles(folder: string, upstream: string): NginxBlocks {
  return {
    http: `sendfile on; tcp_nopush on;
      upstream service { server ${new URL(upstream).host}; keepalive 64; keepalive_requests 100000000; }`,
    server: `location / {
          proxy_pass http://service;
          proxy_http_version 1.1;
          proxy_set_header Connection "";
          proxy_set_header Host $http_host;
          proxy_buffering off;
        }
        location ${ACCEL_PREFIX}/ {
          internal;
          alias ${folder}/;
          disable_symlinks on from=${folder};
          etag off;
          if_modified_since off;
          add_header ETag $upstream_http_etag;
          add_header Last-Modified $upstream_http_last_modified;
          add_header Vary $upstream_http_vary;
          add_header X-Content-Type-Options $upstream_http_x_content_type_options;
          add_header Content-Security-Policy $upstream_http_content_security_policy;
        }`,
  };
}

/** A service for `acceleratedFiles`. */
export const ACCEL_PREFIX = "/media-files";

function configuration(dir: string, port: number, { http, server }: NginxBlocks): string {
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
      ${http}
      server {
        listen 127.0.0.1:${port} backlog=1024;
        ${server}
      }
    }`;
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

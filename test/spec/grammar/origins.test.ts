import { isOriginAllowed } from "@portico/core";
import { describe, expect, it } from "vitest";

const HOST = "desk.example:8080";
const LISTED = ["https://app.example", "https://Loud.example:443/", "app://desk"];

describe("an origin (open points 4)", () => {
  it.each([
    ["none, as everything but browsers has", undefined],
    ["the service's own", "http://desk.example:8080"],
    ["the service's own behind a proxy that takes TLS off", "https://desk.example:8080"],
    ["a listed one", "https://app.example"],
    ["one that is listed in another spelling", "https://loud.example"],
    ["a listed one that is no address of the web", "app://desk"],
  ])("is allowed: %s", (_what, origin) => {
    expect(isOriginAllowed({ origin, host: HOST }, LISTED)).toBe(true);
  });

  it.each([
    ["another host", "http://evil.example"],
    ["the own host with another port", "http://desk.example:8081"],
    ["the own host without its port", "http://desk.example"],
    ["a listed host with another scheme", "http://app.example"],
    ["a listed host with another port", "https://app.example:8443"],
    ["a longer host that begins like a listed one", "https://app.example.evil.example"],
    ["a host below a listed one", "https://x.app.example"],
    ["null, as of a sandboxed frame", "null"],
    ["the own host under a scheme that is not the web's", "file://desk.example:8080"],
    ["an empty one", ""],
    ["one with a path", "http://desk.example:8080/"],
    ["one with a user", "http://x@desk.example:8080"],
    ["two at once", "http://desk.example:8080, http://evil.example"],
    ["one that is no origin", "desk.example:8080"],
  ])("is refused: %s", (_what, origin) => {
    expect(isOriginAllowed({ origin, host: HOST }, LISTED)).toBe(false);
  });

  it.each([
    ["https://desk.example", "desk.example:443", true],
    ["https://desk.example", "desk.example", true],
    ["http://desk.example", "desk.example:443", false],
    ["http://127.0.0.1:9", "127.0.0.1:9", true],
    ["http://[::1]:9", "[::1]:9", true],
    ["http://desk.example", undefined, false],
    ["http://desk.example", "not a host", false],
    ["null", "null", false],
  ])("%s at host %s is the service's own: %s", (origin, host, isOwn) => {
    expect(isOriginAllowed({ origin, host })).toBe(isOwn);
  });
});

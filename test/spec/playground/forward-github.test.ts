import { sign } from "@octokit/webhooks-methods";
import { Secret } from "@portico/core";
import { describe, expect, it } from "vitest";
import { forwardGithub, fromGithub, start } from "../../../playground/forward-github.ts";
import { testForwarder } from "../../harness/forwarder-rules.ts";

const repository = { id: 1, full_name: "ada/tea", html_url: "https://github.example/ada/tea" };
const sender = { login: "ada", id: 2 };

describe("a notification of GitHub", () => {
  it("of a push has the event github.push, and the last commit's message as its title", () => {
    const compare = "https://github.example/ada/tea/compare/a...b";
    const head_commit = { id: "b", message: "Add milk\n\nOnly a little." };
    const notification = { ref: "refs/heads/main", compare, repository, sender, commits: [head_commit], head_commit };
    expect(fromGithub("push", notification)).toEqual({
      event: "github.push",
      payload: {
        repository: "ada/tea",
        sender: "ada",
        title: "Add milk\n\nOnly a little.",
        url: compare,
        ref: "refs/heads/main",
        notification,
      },
    });
  });

  it("of a branch that is gone has no title", () => {
    const { event, payload } = fromGithub("push", { ref: "refs/heads/old", repository, sender, head_commit: null });
    expect([event, payload["title"]]).toEqual(["github.push", undefined]);
  });

  it("of a pull request has its action in the event", () => {
    const pull_request = { number: 7, title: "Milk", body: "Please.", html_url: "https://github.example/ada/tea/pull/7" };
    const notification = { action: "opened", number: 7, pull_request, repository, sender };
    expect(fromGithub("pull_request", notification)).toEqual({
      event: "github.pull_request.opened",
      payload: {
        repository: "ada/tea",
        sender: "ada",
        number: 7,
        title: "Milk",
        text: "Please.",
        url: "https://github.example/ada/tea/pull/7",
        notification,
      },
    });
  });

  it("of a comment has the issue's title, and the comment's text and address", () => {
    const issue = { number: 8, title: "Cold", body: "It is cold.", html_url: "https://github.example/ada/tea/issues/8" };
    const comment = { body: "Warm it.", html_url: "https://github.example/ada/tea/issues/8#c1" };
    const { event, payload } = fromGithub("issue_comment", { action: "created", issue, comment, repository, sender });
    expect(event).toBe("github.issue_comment.created");
    expect(payload).toMatchObject({ number: 8, title: "Cold", text: "Warm it.", url: comment.html_url });
  });

  const deliver = async (notification: object, headers: Record<string, string>) => {
    const app = forwardGithub({
      secret: new Secret("s"),
      trigger: { url: "http://127.0.0.1:1/", secret: new Secret("whs"), events: [], answerWithinMs: 1000 },
    });
    const body = JSON.stringify(notification);
    const signature = await sign("s", body);
    return app.request("/github", { method: "POST", headers: { "x-hub-signature-256": signature, ...headers }, body });
  };

  it("without its X-GitHub-Event is 400", async () => {
    expect((await deliver({ repository }, {})).status).toBe(400);
    expect((await deliver({ repository }, { "x-github-event": "ping" })).status).toBe(204);
  });

  it("may have null where there is nothing", async () => {
    const gone = { ref: "refs/heads/old", repository, sender, head_commit: null };
    expect((await deliver(gone, { "x-github-event": "push" })).status).toBe(204);
  });
});

describe("the forwarder of GitHub", () => {
  testForwarder({
    start,
    path: "/github",
    event: "github.issues.opened",
    body: (text) => JSON.stringify({ action: "opened", issue: { number: 7, title: "Tea" }, extra: { text } }),
    headers: async (body, secret) => ({ "x-github-event": "issues", "x-hub-signature-256": await sign(secret, body) }),
    signatureHeader: "x-hub-signature-256",
    fields: { number: 7, title: "Tea" },
    other: { action: "closed", issue: { number: 7 } },
  });
});

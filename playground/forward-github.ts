// GitHub's webhooks for an agent: verify, map, forward.
import { loadConfig, secretFromEnv } from "@portico/core";
import { sign, verify } from "@octokit/webhooks-methods";
import { bodyLimit, H3, HTTPError } from "h3";
import { toNodeHandler } from "h3/node";
import * as v from "valibot";
import { type Listening, listen } from "./listen.ts";
import { openStandInTrigger } from "./stand-in-trigger.ts";
import { type AgentEvent, TRIGGER_BYTES, triggerAgent, triggerConfig } from "./trigger-agent.ts";

export const githubConfig = v.strictObject({ secret: secretFromEnv("GITHUB_WEBHOOK_SECRET"), trigger: triggerConfig });

const part = v.nullish(v.looseObject({}));

/** The fields that the mapping reads. Other fields of a notification are allowed. */
const githubNotification = v.looseObject({
  action: v.optional(v.string()),
  repository: part,
  sender: part,
  pull_request: part,
  issue: part,
  comment: part,
  head_commit: part,
});

/** `github.push`, `github.pull_request.opened`, …: the event and its action, with the fields that prompts use. */
export function fromGithub(name: string, notification: v.InferOutput<typeof githubNotification>): AgentEvent {
  const { action, repository, sender, pull_request, issue, comment, head_commit, ref, compare } = notification;
  const subject = pull_request ?? issue;
  return {
    event: action === undefined ? `github.${name}` : `github.${name}.${action}`,
    payload: {
      repository: repository?.full_name,
      sender: sender?.login,
      number: subject?.number,
      title: subject?.title ?? head_commit?.message,
      text: (comment ?? subject)?.body,
      url: (comment ?? subject)?.html_url ?? compare,
      ref,
      notification,
    },
  };
}

/** An application with `POST /github`. Mount its `fetch` in your own application, or listen on a port. */
export function forwardGithub({ secret, trigger }: v.InferOutput<typeof githubConfig>): H3 {
  const delivery = v.object({ name: v.string(), notification: v.pipe(v.string(), v.parseJson(), githubNotification) });
  return new H3().use(bodyLimit(TRIGGER_BYTES)).post("/github", async ({ req }) => {
    // The signature covers exactly these bytes, so verify it before parsing.
    const body = await req.text();
    const signature = req.headers.get("x-hub-signature-256");
    if (!body || !signature || !(await verify(secret.reveal(), body, signature)))
      throw new HTTPError({ status: 401, message: "The signature is missing or wrong" });
    const read = v.safeParse(delivery, { name: req.headers.get("x-github-event"), notification: body });
    if (!read.success) throw new HTTPError({ status: 400, message: "The body is not a notification in JSON" });
    return triggerAgent(trigger, fromGithub(read.output.name, read.output.notification), req.signal);
  });
}

/** Starts the forwarder on its own port, configured by these environment variables. */
export function start(env: Readonly<Record<string, string | undefined>> = process.env): Promise<Listening> {
  return listen(toNodeHandler(forwardGithub(loadConfig(githubConfig, { env }).value)));
}

if (import.meta.main) {
  const secret = "a-secret-for-this-story";
  await using agent = await openStandInTrigger();
  await using forwarder = await start({ ...agent.env, AGENT_EVENTS: '["github.push"]', GITHUB_WEBHOOK_SECRET: secret });
  const tell = async (name: string, notification: object) => {
    const body = JSON.stringify(notification);
    const headers = { "x-github-event": name, "x-hub-signature-256": await sign(secret, body) };
    const answer = await fetch(`${forwarder.url}/github`, { method: "POST", headers, body });
    console.log(`${name}: ${answer.status}`);
  };
  await tell("ping", { zen: "Design for failure." });
  await tell("push", { ref: "refs/heads/main", repository: { full_name: "ada/tea" }, head_commit: { message: "Add milk" } });
}

// Sends an agent a picture and a file: `send-files.ts photo.png report.pdf`.
import { openAsBlob } from "node:fs";
import { connectAgent } from "@portico/client";

const { AGENT = "", AGENT_TOKEN = "" } = process.env;
const [picture = "", document = ""] = process.argv.slice(2);
await using client = connectAgent({ baseURL: AGENT, token: AGENT_TOKEN });

const file = new File([await openAsBlob(picture)], "photo.png", { type: "image/png" });
const report = await openAsBlob(document);
const signal = AbortSignal.timeout(60_000);

const photo = await client.uploadMedia(file); // a File, as <input type="file"> gives it
const { fileReference } = await client.uploadAttachment(report, { name: "report.pdf", type: "application/pdf", signal });
const query = client.submit({ agentId: "helper", prompt: "Compare them", mediaRefs: [photo], fileReferences: [fileReference] });
console.log((await query.ended).status);

const { items, missing } = await client.mediaLinks([photo.mediaId]);
for (const { url } of items) console.log(url); // usable as <img src> without changes
console.log(`${missing.length} missing`);

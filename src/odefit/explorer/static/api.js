// Questions to the server that has sent this page, and to nobody else.

/** An answer that is a sentence for the user: something was asked that makes no sense. */
export class Refusal extends Error {}

/** Ask for something that changes nothing. */
export async function get(path) {
  return answer(await reached(fetch(`api/${path}`)));
}

/** Ask for something with values. */
export async function post(path, content = {}) {
  const headers = { "Content-Type": "application/json" };
  return answer(await reached(fetch(`api/${path}`, { method: "POST", headers, body: JSON.stringify(content) })));
}

async function reached(response) {
  try {
    return await response;
  } catch {
    throw new Refusal("The server does not answer: 'odefit explore' has ended, or is busy.");
  }
}

async function answer(response) {
  if (response.status === 403) {
    throw new Refusal("The server refuses this page; open the address that it has printed.");
  }
  const found = await response.json();
  if (!response.ok) throw new Refusal(found.error ?? `The server answers ${response.status}.`);
  return found;
}

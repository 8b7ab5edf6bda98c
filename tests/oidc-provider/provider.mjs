// A provider of identities on loopback, for tests: `node provider.mjs REDIRECT_URI [ALGORITHM]`.
//
// In: the redirect URI of the hub, and the algorithm of its tokens. Out: a line `listening PORT`. A browser that follows
// `/interaction/...?login=NAME`, as the form there does, is signed in as NAME without a password. It ends with its standard input.
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const redirect = process.argv[2];
const alg = process.argv[3] ?? 'RS256';
const accounts = {
  ada: { email: 'ada@x.example', email_verified: true, preferred_username: 'ada', groups: [] },
  bob: { email: 'bob@x.example', email_verified: true, preferred_username: 'bob', groups: ['people', 'operators'] },
  eve: { email: 'ada@x.example', email_verified: false, preferred_username: 'eve', groups: [] },
};

// A key of each kind, new at each start.
const keys = [
  generateKeyPairSync('rsa', { modulusLength: 2048 }),
  generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  generateKeyPairSync('ed25519'),
].map((pair, number) => ({ ...pair.privateKey.export({ format: 'jwk' }), kid: `key-${number}`, use: 'sig' }));

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{
      client_id: 'holdfast',
      client_secret: 'a secret of a test, with +/=% in it',
      redirect_uris: [redirect],
      response_types: ['code'],
      grant_types: ['authorization_code'],
      id_token_signed_response_alg: alg,
    }],
    claims: {
      openid: ['sub'],
      email: ['email', 'email_verified'],
      profile: ['preferred_username'],
      groups: ['groups'],
    },
    scopes: ['openid', 'email', 'profile', 'groups'],
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false } },
    cookies: { keys: ['a key of a test'] },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (_, id) => ({
      accountId: id,
      claims: async () => ({ sub: id, ...(accounts[id] ?? {}) }),
    }),
    enabledJWA: {
      idTokenSigningAlgValues: ['RS256', 'ES256', 'EdDSA', 'PS256'],
    },
    jwks: { keys },
  });
  const callback = provider.callback();
  server.on('request', async (request, response) => {
    const url = new URL(request.url, issuer);
    if (!url.pathname.startsWith('/interaction/')) return callback(request, response);
    // The page of a provider: `?login=NAME` signs in, and consents to everything.
    try {
      const { prompt, params, grantId, session } = await provider.interactionDetails(request, response);
      const login = url.searchParams.get('login');
      let result;
      if (prompt.name === 'login') {
        if (login === null) {
          response.setHeader('content-type', 'text/html');
          response.end('<form><label>Name <input name="login"></label> <button>Sign in</button></form>');
          return;
        }
        result = login === ''
          ? { error: 'access_denied', error_description: 'the person went away' }
          : { login: { accountId: login } };
      } else {
        const grant = grantId ? await provider.Grant.find(grantId)
          : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
        if (prompt.details.missingOIDCScope) grant.addOIDCScope(prompt.details.missingOIDCScope.join(' '));
        if (prompt.details.missingOIDCClaims) grant.addOIDCClaims(prompt.details.missingOIDCClaims);
        result = { consent: { grantId: await grant.save() } };
      }
      await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
    } catch (error) {
      response.statusCode = 500;
      response.end(String(error));
    }
  });
  console.log(`listening ${server.address().port}`);
});
// Who started it reads one line, and closes its end.
process.stdout.on('error', () => {});
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));

//! Arguments of `holdfast operator`, `holdfast token` and `holdfast customer`.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use holdfast_protocol::access::AccessScope;
use holdfast_protocol::customer::{CustomerNotes, DisplayName, MailContact, WebhookContact};
use holdfast_protocol::host_label::LabelSelector;
use holdfast_protocol::id::{CustomerId, OperatorName};
use holdfast_protocol::oidc::ProviderPerson;
use holdfast_protocol::operator::Role;

use super::{AssumeYes, LabelTerm};

/// Of `holdfast operator`.
#[derive(Debug, Subcommand)]
pub enum OperatorCommand {
    /// Show the people within your own role and scope, including revoked ones.
    List,
    /// Create a person, or another token for one with the same role and scope. The token is shown only once.
    #[command(after_help = "\
Nobody makes a role or a scope above their own.

Examples:
  holdfast operator add eve --role operator
  holdfast operator add kim --role operator --hosts site=vienna
  holdfast operator add ann@acme --role customer --customer acme")]
    Add {
        /// The name.
        name: OperatorName,
        /// What the person may do.
        #[arg(long, value_enum)]
        role: RoleArg,
        #[command(flatten)]
        scope: ScopeArgs,
        /// How many days the token is valid.
        #[arg(long, value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=3650))]
        days: u32,
    },
    /// Change a person's role or scope. It holds at once for their tokens and sessions.
    #[command(after_help = "\
What is not given stays. Nobody gives a role or a scope above their own. Machine tokens that they made end where they
are more than their maker is now.

Examples:
  holdfast operator set kim --role viewer
  holdfast operator set kim --hosts site=graz
  holdfast operator set kim --role operator --everything")]
    Set {
        /// The name.
        name: OperatorName,
        /// What the person may do from now on.
        #[arg(long, value_enum, required_unless_present_any = ["customer", "hosts", "everything"])]
        role: Option<RoleArg>,
        #[command(flatten)]
        scope: NewScopeArgs,
        #[command(flatten)]
        assume_yes: AssumeYes,
    },
    /// Print a link by which an operator signs in once, within 15 minutes, to set a password and an authenticator.
    SignInLink {
        /// The name.
        name: OperatorName,
    },
    /// Let an operator sign in by the hub's provider (OpenID Connect). It replaces a link before.
    LinkOidc {
        /// The name.
        name: OperatorName,
        #[command(flatten)]
        person: ProviderPersonArgument,
    },
    /// End an operator's link with the provider, and their sessions.
    UnlinkOidc {
        /// The name.
        name: OperatorName,
    },
    /// Revoke a person: their tokens become invalid at once, and those of the machines that they made.
    Revoke {
        /// The name.
        name: OperatorName,
        #[command(flatten)]
        assume_yes: AssumeYes,
    },
}

/// What a person or a token may touch: everything where nothing is given.
#[derive(Clone, Debug, ClapArgs)]
#[group(multiple = false)]
pub struct ScopeArgs {
    /// Only guests of this customer, and what belongs to them.
    #[arg(long, value_name = "CUSTOMER")]
    customer: Option<CustomerId>,
    /// Only hosts with these labels, such as tier=canary or tier=canary+site=vienna.
    #[arg(long, value_name = "SELECTOR")]
    hosts: Option<LabelSelector>,
}

impl From<ScopeArgs> for AccessScope {
    fn from(args: ScopeArgs) -> Self {
        match (args.customer, args.hosts) {
            (Some(customer), _) => Self::Customer { customer },
            (None, Some(labels)) => Self::Hosts { labels },
            (None, None) => Self::Everything {},
        }
    }
}

/// What a person may touch from now on: as before where nothing is given.
#[derive(Clone, Debug, ClapArgs)]
#[group(multiple = false)]
pub struct NewScopeArgs {
    /// Only guests of this customer, and what belongs to them.
    #[arg(long, value_name = "CUSTOMER")]
    customer: Option<CustomerId>,
    /// Only hosts with these labels, such as tier=canary or tier=canary+site=vienna.
    #[arg(long, value_name = "SELECTOR")]
    hosts: Option<LabelSelector>,
    /// Everything that the hub has.
    #[arg(long)]
    everything: bool,
}

impl NewScopeArgs {
    /// The new scope, where one was given.
    pub fn given(self) -> Option<AccessScope> {
        let is_given = self.everything || self.customer.is_some() || self.hosts.is_some();
        is_given.then(|| ScopeArgs { customer: self.customer, hosts: self.hosts }.into())
    }
}

/// What a person or a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RoleArg {
    /// Sees what is one customer's, and may object to jobs.
    Customer,
    /// May only read.
    Viewer,
    /// May invite and approve hosts, and apply desired documents.
    Operator,
    /// May create and revoke operators.
    Admin,
}

impl From<RoleArg> for Role {
    fn from(word: RoleArg) -> Self {
        match word {
            RoleArg::Customer => Self::Customer,
            RoleArg::Viewer => Self::Viewer,
            RoleArg::Operator => Self::Operator,
            RoleArg::Admin => Self::Admin,
        }
    }
}

/// Of `holdfast token`.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Show your machine tokens with their last use; for admins, those of all that they stand above.
    List,
    /// Create a token for a machine. It is shown only once, and ends with its maker.
    #[command(after_help = "\
Its role and scope are at most your own. A machine makes no tokens and no people.

Examples:
  holdfast token create ci --role operator --hosts tier=canary --days 30
  holdfast token create billing --role viewer --customer acme")]
    Create {
        /// What the machine is called in the log.
        name: OperatorName,
        /// What it may do.
        #[arg(long, value_enum)]
        role: RoleArg,
        #[command(flatten)]
        scope: ScopeArgs,
        /// How many days it is valid.
        #[arg(long, value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=3650))]
        days: u32,
    },
    /// Create the next secret of a token. Those before it go on for the overlap.
    Rotate {
        /// The token's name.
        name: OperatorName,
        /// How many days the new secret is valid.
        #[arg(long, value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=3650))]
        days: u32,
        /// How many hours the secrets before it go on.
        #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u32).range(0..=720))]
        overlap_hours: u32,
    },
    /// Revoke a token: all its secrets become invalid at once.
    Revoke {
        /// The token's name.
        name: OperatorName,
        #[command(flatten)]
        assume_yes: AssumeYes,
    },
}

/// Of `holdfast customer`.
#[derive(Debug, Subcommand)]
pub enum CustomerCommand {
    /// Show customers: those that were added, and those that only documents name.
    List,
    /// Show one customer.
    Show {
        /// The customer, as guests name it.
        customer: CustomerId,
    },
    /// Add a customer.
    Add {
        /// The customer, as guests name it.
        customer: CustomerId,
        #[command(flatten)]
        fields: FieldArgs,
        /// Labels, each KEY=VALUE.
        #[arg(long = "label", value_name = "KEY=VALUE")]
        labels: Vec<LabelTerm>,
    },
    /// Change what is written about a customer. What is not given stays.
    #[command(after_help = "\
Examples:
  holdfast customer set acme --mail ops@acme.example --label tier=gold
  holdfast customer set acme --remove notes --label tier-")]
    Set {
        /// The customer, as guests name it.
        customer: CustomerId,
        #[command(flatten)]
        fields: FieldArgs,
        /// Labels: KEY=VALUE sets one, KEY- removes it.
        #[arg(long = "label", value_name = "KEY=VALUE|KEY-")]
        labels: Vec<LabelTerm>,
        /// Remove this.
        #[arg(long, value_enum, value_name = "FIELD")]
        remove: Vec<FieldArg>,
    },
    /// Remove a customer that no document, report, person or token names.
    Remove {
        /// The customer.
        customer: CustomerId,
        #[command(flatten)]
        assume_yes: AssumeYes,
    },
}

/// What is written about a customer.
#[derive(Debug, ClapArgs)]
pub struct FieldArgs {
    /// What it is called among people.
    #[arg(long, value_name = "NAME", value_parser = display_name)]
    pub display_name: Option<DisplayName>,
    /// Where it is reached by mail.
    #[arg(long, value_name = "ADDRESS", value_parser = mail, conflicts_with = "webhook")]
    pub mail: Option<MailContact>,
    /// Where it is reached by a webhook.
    #[arg(long, value_name = "URL", value_parser = webhook)]
    pub webhook: Option<WebhookContact>,
    /// Notes, which the customer does not see.
    #[arg(long, value_name = "TEXT", value_parser = notes)]
    pub notes: Option<CustomerNotes>,
}

/// A field that can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FieldArg {
    DisplayName,
    Contact,
    Notes,
}

fn display_name(text: &str) -> Result<DisplayName, &'static str> {
    text.to_owned().try_into()
}

fn mail(text: &str) -> Result<MailContact, &'static str> {
    text.to_owned().try_into()
}

fn webhook(text: &str) -> Result<WebhookContact, &'static str> {
    text.to_owned().try_into()
}

fn notes(text: &str) -> Result<CustomerNotes, &'static str> {
    text.to_owned().try_into()
}

/// Who an operator is at the provider.
#[derive(Clone, Debug, ClapArgs)]
#[group(required = true, multiple = false)]
pub struct ProviderPersonArgument {
    /// The claim `sub` that the provider gives them, as a refused sign-in shows it.
    #[arg(long)]
    subject: Option<String>,
    /// The claim that the hub's oidc.person_claim names, such as an e-mail address: it counts for the first sign-in, whose subject
    /// is kept.
    #[arg(long)]
    person: Option<String>,
}

impl From<ProviderPersonArgument> for ProviderPerson {
    fn from(given: ProviderPersonArgument) -> Self {
        match (given.subject, given.person) {
            (Some(subject), _) => Self::Subject { subject },
            (None, value) => Self::Claim { value: value.unwrap_or_default() },
        }
    }
}
